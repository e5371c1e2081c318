//! Tasks on their way in, and deliveries on their way out.

use bytes::Bytes;
use punctual_core::{Delivery, Form, Task, When};

use super::Unclear;
use super::field::Field;
use super::plain::LeaseForm;
use super::settings::RetryForm;

form! {
    TaskForm of Task {
        #[prost(string, tag = 1)] topic: String,
        #[prost(string, optional, tag = 2)] id: Option<String>,
        #[prost(bytes = "bytes", tag = 3)] body: Bytes,
        #[prost(uint32, tag = 4)] form: u32,
        #[prost(message, repeated, tag = 5)] headers: Vec<HeaderForm>,
        #[prost(string, optional, tag = 6)] routing_key: Option<String>,
        #[prost(message, optional, tag = 7)] when: Option<WhenForm>,
        #[prost(string, optional, tag = 8)] key: Option<String>,
        #[prost(uint32, optional, tag = 9)] priority: Option<u32>,
        #[prost(uint64, optional, tag = 10)] ttl: Option<u64>,
        #[prost(message, optional, tag = 11)] retry: Option<RetryForm>,
        #[prost(uint64, optional, tag = 12)] lease: Option<u64>,
        #[prost(uint64, optional, tag = 13)] max_lease: Option<u64>,
        #[prost(bool, tag = 14)] replace: bool,
    }
}

form! {
    DeliveryForm of Delivery {
        #[prost(string, tag = 1)] topic: String,
        #[prost(string, tag = 2)] id: String,
        #[prost(string, tag = 3)] queue: String,
        #[prost(uint64, tag = 4)] number: u64,
        #[prost(bytes = "bytes", tag = 5)] body: Bytes,
        #[prost(uint32, tag = 6)] form: u32,
        #[prost(message, repeated, tag = 7)] headers: Vec<HeaderForm>,
        #[prost(string, optional, tag = 8)] routing_key: Option<String>,
        #[prost(string, optional, tag = 9)] key: Option<String>,
        #[prost(uint32, tag = 10)] priority: u32,
        #[prost(uint32, tag = 11)] attempt: u32,
        #[prost(uint64, tag = 12)] scheduled_at: u64,
        #[prost(uint64, tag = 13)] due: u64,
        #[prost(uint64, tag = 14)] fired_at: u64,
        #[prost(message, optional, tag = 15)] lease: Option<LeaseForm>,
        #[prost(uint64, tag = 16)] until: u64,
        #[prost(uint64, tag = 17)] lease_time: u64,
    }
}

choice! {
    WhenForm in when of When, When {
        1 At(#[prost(uint64, tag = 1)] at: u64),
        2 After(#[prost(uint64, tag = 1)] delay: u64),
    }
}

numbered! { Form { 1 Bytes, 2 Text, 3 Json, } }

#[derive(prost::Message)]
pub(super) struct HeaderForm {
    #[prost(string, tag = 1)]
    name: String,
    #[prost(string, tag = 2)]
    value: String,
}

impl Field<(String, String)> for HeaderForm {
    fn put((name, value): &(String, String)) -> HeaderForm {
        HeaderForm { name: name.clone(), value: value.clone() }
    }
    fn take(self) -> Result<(String, String), Unclear> {
        Ok((self.name, self.value))
    }
}

/// A body that takes another one's place.
#[derive(prost::Message)]
pub(super) struct BodyForm {
    #[prost(uint32, tag = 1)]
    form: u32,
    #[prost(bytes = "bytes", tag = 2)]
    body: Bytes,
}

impl Field<(Form, Bytes)> for BodyForm {
    fn put((form, body): &(Form, Bytes)) -> BodyForm {
        BodyForm { form: Field::put(form), body: body.clone() }
    }
    fn take(self) -> Result<(Form, Bytes), Unclear> {
        Ok((Field::take(self.form)?, self.body))
    }
}
