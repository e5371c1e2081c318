//! MessagePack, as far as scripts are told things in it: lists, texts and small numbers.

/// A value that is being written.
#[derive(Default)]
pub(crate) struct Pack(Vec<u8>);

impl Pack {
    /// A list of so many values, which follow.
    pub(crate) fn list(&mut self, length: usize) -> &mut Pack {
        let length = u32::try_from(length).expect("no batch or read has so many parts");
        self.0.push(0xdd);
        self.0.extend(length.to_be_bytes());
        self
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Pack {
        match u8::try_from(bytes.len()) {
            Ok(length) => self.0.extend([0xd9, length]),
            Err(_) => {
                let length = u32::try_from(bytes.len()).expect("a row or body has less than 4 GB");
                self.0.push(0xdb);
                self.0.extend(length.to_be_bytes());
            }
        }
        self.0.extend(bytes);
        self
    }

    pub(crate) fn number(&mut self, number: u32) -> &mut Pack {
        self.0.push(0xce);
        self.0.extend(number.to_be_bytes());
        self
    }

    /// A list of texts.
    pub(crate) fn texts<T: AsRef<[u8]>>(&mut self, texts: &[T]) -> &mut Pack {
        self.list(texts.len());
        texts.iter().for_each(|text| {
            self.bytes(text.as_ref());
        });
        self
    }

    pub(crate) fn done(self) -> Vec<u8> {
        self.0
    }
}
