//! What the shop wants done later: a stock of it at the beginning, and then a little each half second. Also what its
//! customers change about it: most orders are paid in time, and some coupons are extended.

use std::collections::VecDeque;
use std::time::Duration;

use punctual_chance::Chance;
use punctual_client::{Client, Error, NewTask, Reschedule, Shift, Task, Time};
use serde::Serialize;
use tokio::time::{MissedTickBehavior, interval};

use crate::MINUTE;

const TICK: Duration = Duration::from_millis(500);
const DAY: Duration = Duration::from_secs(24 * 3_600);
const USERS: u64 = 40;

#[derive(Serialize)]
struct Order<'a> {
    order: u64,
    user: &'a str,
    /// In cents.
    total: u64,
    items: [&'a str; 2],
}

pub struct Shop {
    client: Client,
    chance: Chance,
    run: u64,
    /// How many tasks there were; the next one's id.
    count: u64,
    /// Orders that will be paid, and when; the next one first.
    paying: VecDeque<(Time, String)>,
    /// Coupons of late, of which some are extended.
    coupons: VecDeque<String>,
}

impl Shop {
    pub fn open(client: Client, run: u64) -> Shop {
        Shop { client, chance: Chance::new(run), run, count: 0, paying: VecDeque::new(), coupons: VecDeque::new() }
    }

    /// What would have come about before anybody looked.
    pub async fn stock_up(&mut self) -> Result<(), Error> {
        let mut tasks = Vec::new();
        for _ in 0..120 {
            let left = self.seconds(1, 30);
            tasks.push(self.order(left)?);
        }
        for _ in 0..300 {
            let far = Duration::from_secs(self.chance.magnitude(60, 90 * DAY.as_secs()));
            tasks.push(self.reminder(far));
        }
        for _ in 0..400 {
            let end = self.seconds(60, 3_600);
            tasks.push(self.coupon(end)?);
        }
        tasks.extend((0..60).map(|_| self.invoice()));
        tasks.extend((0..12).map(|_| self.ticket(Duration::ZERO)));
        tasks.extend((0..25).map(|_| self.parcel(Duration::ZERO)));
        tasks.extend((0..60).map(|_| self.reminder(Duration::ZERO)));
        self.schedule(tasks).await
    }

    /// Goes on for ever.
    pub async fn trade(mut self) -> Result<(), Error> {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let tasks = self.wishes()?;
            let changed = match self.schedule(tasks).await {
                Ok(()) => self.change().await,
                failed => failed,
            };
            // A server that is too busy now is not in half a second.
            changed.or_else(|error| if error.is_retryable() { Ok(()) } else { Err(error) })?;
        }
    }

    /// What is new in half a second.
    fn wishes(&mut self) -> Result<Vec<NewTask>, Error> {
        let mut tasks = Vec::new();
        for _ in 0..4 {
            tasks.push(self.order(15 * MINUTE)?);
        }
        let end = self.seconds(60, 3_000);
        tasks.push(self.coupon(end)?);
        for _ in 0..2 {
            let is_far = self.chance.percent(10);
            let far = if is_far { DAY * self.chance.between(1, 90) as u32 } else { self.seconds(2, 40) };
            tasks.push(self.reminder(far));
        }
        if self.chance.happens(1, 6) {
            let wait = self.seconds(1, 20);
            tasks.push(self.ticket(wait));
        }
        if self.chance.happens(1, 10) {
            tasks.push(self.invoice());
        }
        if self.chance.happens(1, 6) {
            let wait = self.seconds(1, 10);
            tasks.push(self.parcel(wait));
        }
        Ok(tasks)
    }

    async fn schedule(&self, tasks: Vec<NewTask>) -> Result<(), Error> {
        // Outcomes of single tasks matter to nobody here: what a full queue or a paused topic refuses is to be seen in the console.
        let _ = self.client.schedule_many(tasks).await?;
        Ok(())
    }

    /// Orders are paid, and a coupon is extended now and then.
    async fn change(&mut self) -> Result<(), Error> {
        let now = Time::now();
        while self.paying.front().is_some_and(|(paid_at, _)| *paid_at <= now) {
            let Some((_, id)) = self.paying.pop_front() else { break };
            self.client.cancel("order-unpaid", &id).await?;
        }
        if self.chance.happens(1, 8)
            && let Some(id) = self.coupons.pop_front()
        {
            let later = Reschedule { by: Some(Shift(5 * 60_000)), ..Reschedule::default() };
            self.client.reschedule("coupon-end", &id, later).await?;
        }
        Ok(())
    }

    fn order(&mut self, unpaid_after: Duration) -> Result<NewTask, Error> {
        let (id, user) = (self.id("order"), self.user());
        // Most pay in time, and some at the last moment: then it is for the server to say who was first.
        if self.chance.percent(65) {
            let left = unpaid_after.as_millis() as u64;
            let paid_at = Time(Time::now().0 + self.chance.between(left / 10, left));
            let place = self.paying.partition_point(|(other, _)| *other <= paid_at);
            self.paying.insert(place, (paid_at, id.clone()));
        }
        let items = [*self.chance.pick(&["tea", "coffee", "cup"]), *self.chance.pick(&["pot", "spoon", "茶杯"])];
        let order = Order { order: self.count, user: &user, total: self.chance.between(500, 20_000), items };
        let task = Task::new("order-unpaid").id(id).key(&user).after(unpaid_after).header("source", "checkout");
        Ok(task.json(&order)?.into())
    }

    fn coupon(&mut self, end: Duration) -> Result<NewTask, Error> {
        let (id, user) = (self.id("coupon"), self.user());
        self.coupons.push_back(id.clone());
        if self.coupons.len() > 100 {
            self.coupons.pop_front();
        }
        let percent = self.chance.between(1, 6) * 5;
        Ok(Task::new("coupon-end").id(id).key(user).after(end).json(&serde_json::json!({ "percent": percent }))?.into())
    }

    fn reminder(&mut self, wait: Duration) -> NewTask {
        let (id, user) = (self.id("reminder"), self.user());
        // Nobody has bound a queue for letters: those are unrouted.
        let way = if self.chance.percent(3) { "letter" } else { *self.chance.pick(&["sms", "sms", "email"]) };
        let text =
            *self.chance.pick(&["Your table is booked for 19:00", "明天上午十点开会", "Time to water the plants"]);
        let gateway = format!("gateway-{}", self.chance.between(1, 8));
        Task::new("reminder")
            .id(id)
            .key(user)
            .routing_key(format!("visit.{way}"))
            .after(wait)
            .text(text)
            .header("gateway", gateway)
            .into()
    }

    fn ticket(&mut self, wait: Duration) -> NewTask {
        let priority = *self.chance.pick(&[10, 100, 1_000, 65_536]);
        Task::new("ticket-escalation")
            .id(self.id("ticket"))
            .after(wait)
            .priority(priority)
            .text("nobody has answered")
            .into()
    }

    fn invoice(&mut self) -> NewTask {
        Task::new("invoice").id(self.id("invoice")).text("send it").into()
    }

    fn parcel(&mut self, wait: Duration) -> NewTask {
        Task::new("parcel-lost").id(self.id("parcel")).after(wait).text("ask the depot").into()
    }

    fn id(&mut self, kind: &str) -> String {
        self.count += 1;
        format!("{kind}-{}-{}", self.run, self.count)
    }

    fn user(&mut self) -> String {
        format!("user-{}", self.chance.between(1, USERS))
    }

    fn seconds(&mut self, first: u64, last: u64) -> Duration {
        Duration::from_secs(self.chance.between(first, last))
    }
}
