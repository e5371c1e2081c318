"""Uses the client that was generated from the document: the life of a task, a refusal, a list, who is asking."""

import sys

from punctual_client import AuthenticatedClient
from punctual_client.api.consumers import reserve, settle
from punctual_client.api.server import me
from punctual_client.api.tasks import cancel_task, get_task, list_tasks, schedule_task
from punctual_client.api.topics import put_topic
from punctual_client.models import Action, Actions, Do, NewTask, Problem, Reserve, Role, TopicSettings

url, token = sys.argv[1:]
client = AuthenticatedClient(base_url=url, token=token)

assert me.sync(client=client).roles == [Role.ADMIN]
assert put_topic.sync("orders", client=client, body=TopicSettings(owner="shop")).settings.owner == "shop"

scheduled = schedule_task.sync(client=client, body=NewTask(topic="orders", id="7", delay="1ms", body={"order": 7}))
assert (scheduled.topic, scheduled.id, scheduled.outcome.value) == ("orders", "7", "created"), scheduled

[delivery] = reserve.sync(client=client, body=Reserve(queues=["orders"], wait="20s")).deliveries
assert (delivery.id, delivery.body, delivery.attempt) == ("7", {"order": 7}, 1), delivery
late = cancel_task.sync("orders", "7", client=client)
assert isinstance(late, Problem) and late.code == "too-late" and late.standing, late

done = settle.sync(client=client, body=Actions(actions=[Action(do=Do.ACKNOWLEDGE, lease=delivery.lease)]))
assert done.results[0].outcome.value == "acknowledged", done
assert get_task.sync("orders", "7", client=client).standing.ending.value == "done"

for number in range(3):
    schedule_task.sync(client=client, body=NewTask(topic="mails", delay="1h", text=str(number)))
page = list_tasks.sync(client=client, topic="mails", limit=2, bodies=True)
assert (len(page.tasks), bool(page.next_)) == (2, True), page
page = list_tasks.sync(client=client, topic="mails", cursor=page.next_)
assert len(page.tasks) == 1, page

stranger = AuthenticatedClient(base_url=url, token="nonsense")
assert me.sync(client=stranger).code == "unauthorized"
print("fine")
