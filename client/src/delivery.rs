//! Reading the body of a delivery.

use punctual_wire::Delivery;
use serde::de::DeserializeOwned;

use crate::error::Error;

/// The body of a [`Delivery`], as what one needs.
pub trait DeliveryBody {
    /// The body read from JSON, also if it was handed in as text or bytes.
    fn json<T: DeserializeOwned>(&self) -> Result<T, Error>;

    /// The body as it was handed in; JSON as its text.
    fn bytes(&self) -> &[u8];
}

impl DeliveryBody for Delivery {
    fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(self.bytes()).map_err(|error| Error::BadBody { reason: error.to_string() })
    }

    fn bytes(&self) -> &[u8] {
        match (&self.body, &self.text, &self.base64) {
            (Some(json), _, _) => json.get().as_bytes(),
            (_, Some(text), _) => text.as_bytes(),
            (_, _, Some(bytes)) => &bytes.0,
            _ => &[],
        }
    }
}
