//! The store contract, call by call.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;
use punctual_core::store::{
    Batch, Beat, Claim, Entry, Fence, Found, Hardship, Incarnation, Outdated, Refusal, Roll, ShardId, Store,
    StoreError, Tenure, Terms, Want,
};
use punctual_database::WORTHWHILE;

use crate::answer::Answer;
use crate::commit::Standing;
use crate::read::{damaged, next};
use crate::sql::Sql;
use crate::{MysqlStore, commit, membership, read};

/// Lanes beyond this only wait for each other's syncs.
const LANES: usize = 4;

impl Store for MysqlStore {
    fn beat(&self, beat: &Beat) -> Result<Roll, StoreError> {
        membership::beat(self, beat)
    }

    fn claim(&self, who: &Incarnation, wanted: &[(ShardId, Fence)]) -> Result<Vec<Claim>, StoreError> {
        membership::claim(self, who, wanted)
    }

    fn release(&self, shard: ShardId, fence: Fence, to: Option<&Incarnation>) -> Result<Fence, StoreError> {
        membership::release(self, shard, fence, to)
    }

    fn cluster_get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        membership::get(self, key)
    }

    fn cluster_put(&self, key: &str, seen: u64, value: &[u8]) -> Result<Result<u64, Outdated>, StoreError> {
        membership::put(self, key, seen, value)
    }

    fn read(&self, shard: ShardId, tenure: Tenure, wants: &[Want<'_>]) -> Result<Vec<Found>, StoreError> {
        let wants: Vec<(ShardId, Want<'_>)> = wants.iter().map(|want| (shard, *want)).collect();
        self.gather(&wants, Some((shard, tenure)))
    }

    fn look(&self, wants: &[(ShardId, Want<'_>)]) -> Result<Vec<Found>, StoreError> {
        self.gather(wants, None)
    }

    fn commit(&self, batches: Vec<Batch>) -> Result<Vec<Result<(), Refusal>>, StoreError> {
        commit::commit(self, &batches)
    }

    fn terms(&self) -> Terms {
        // In hexadecimal a batch is twice as long, and it should still fit into one packet.
        Terms {
            batch_bytes: (self.packet() / 3).min(8 << 20),
            lanes: LANES,
            worthwhile: WORTHWHILE,
            ..Terms::default()
        }
    }

    fn hardship(&self) -> Option<Hardship> {
        self.hardships.current()
    }
}

impl MysqlStore {
    /// How a shard stands, to be read by [`Standing::read`].
    pub(crate) fn standing_of(&self, shard: ShardId) -> Sql {
        Sql::from(format!("SELECT fence,serial FROM {} WHERE shard={}", self.tables.shards, shard.0))
    }

    /// Reads what is wanted, and then whether the reader is the owner, if it says that it is.
    fn gather(
        &self,
        wants: &[(ShardId, Want<'_>)],
        owner: Option<(ShardId, Tenure)>,
    ) -> Result<Vec<Found>, StoreError> {
        let mut statements = Vec::new();
        for (shard, want) in wants {
            read::ask(&mut statements, &self.tables, *shard, want);
        }
        let mut answers = self.ask_all(statements, owner)?;
        let mut gathered = Vec::with_capacity(wants.len());
        for (shard, want) in wants {
            gathered.push(read::gather(&mut answers, want).map_err(|error| error.in_shard(*shard))?);
        }
        if gathered.iter().any(|(_, long)| !long.is_empty()) {
            self.fetch_long_bodies(wants, &mut gathered, owner)?;
        }
        Ok(gathered.into_iter().map(|(found, _)| found).collect())
    }

    /// Has statements carried out, in as few round trips as their length allows.
    fn ask_all(
        &self,
        mut statements: Vec<Sql>,
        owner: Option<(ShardId, Tenure)>,
    ) -> Result<VecDeque<Answer>, StoreError> {
        statements.extend(owner.map(|(shard, _)| self.standing_of(shard)));
        let mut texts: Vec<Sql> = Vec::new();
        for statement in &statements {
            match texts.last_mut().filter(|text| text.len() + statement.len() < self.packet()) {
                Some(text) => drop(text.then(statement)),
                None => texts.push(statement.clone()),
            }
        }
        let mut answers = self.pool.retry(|line, deadline| {
            let mut answers = VecDeque::with_capacity(statements.len());
            for text in &texts {
                answers.extend(line.ask(text, deadline).map_err(|stopped| stopped.why)?);
            }
            Ok(answers)
        })?;
        if let Some((_, tenure)) = owner {
            let standing = Standing::read(answers.pop_back())?;
            standing.refusal(tenure.fence, tenure.serial).map_or(Ok(()), Err)?;
        }
        Ok(answers)
    }

    /// Gets the bodies that were too long to come with their pages. A row that went meanwhile is left out.
    fn fetch_long_bodies(
        &self,
        wants: &[(ShardId, Want<'_>)],
        gathered: &mut [read::Gathered],
        owner: Option<(ShardId, Tenure)>,
    ) -> Result<(), StoreError> {
        let with_long = |long: &[(usize, u64)]| !long.is_empty();
        let mut statements = Vec::new();
        for ((shard, _), (_, long)) in wants.iter().zip(gathered.iter()).filter(|(_, (_, long))| with_long(long)) {
            let (names, shard) = (&self.tables.names, shard.0);
            let mut sql = Sql::from(format!("SELECT seq,body FROM {names} WHERE shard={shard} AND seq IN ("));
            sql.list(long, |sql, (_, seq)| sql.number(*seq)).raw(")");
            statements.push(sql);
        }
        let mut answers = self.ask_all(statements, owner)?;
        for (found, long) in gathered.iter_mut().filter(|(_, long)| with_long(long)) {
            let mut bodies: HashMap<u64, Bytes> = HashMap::new();
            for mut record in next(&mut answers)? {
                let seq = record.number().map_err(damaged)?;
                bodies.insert(seq, record.bytes().map_err(damaged)?.unwrap_or_default());
            }
            let rows = match found {
                Found::Span(page) => &mut page.rows,
                Found::Members(page) => &mut page.rows,
                Found::Each(_) | Found::Tallies(_) => continue,
            };
            let mut is_gone = vec![false; rows.len()];
            for (index, seq) in long.iter() {
                match bodies.remove(seq) {
                    Some(body) => rows[*index].body = body,
                    None => is_gone[*index] = true,
                }
            }
            let mut gone = is_gone.into_iter();
            rows.retain(|_| !gone.next().unwrap_or_default());
        }
        Ok(())
    }
}
