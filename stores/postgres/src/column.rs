//! Columns of values in the form in which PostgreSQL takes an array: many rows travel as a few parameters.
//!
//! ```text
//! dimensions: i32 (0 if empty, else 1), has nulls: i32, type of the elements: u32, length: i32, lower bound: i32 (1)
//! each element: length: i32 (-1: null), its bytes
//! ```

use std::error::Error;

use bytes::{BufMut, BytesMut};
use tokio_postgres::types::{IsNull, Kind, ToSql, Type, to_sql_checked};

use crate::number::number;

/// A column that is being filled. What is put in has to be of its type.
#[derive(Debug)]
pub(crate) struct Column {
    element: Type,
    count: i32,
    has_null: bool,
    bytes: BytesMut,
}

impl Column {
    pub(crate) fn new(element: Type) -> Column {
        Column { element, count: 0, has_null: false, bytes: BytesMut::new() }
    }

    /// The type of the whole.
    pub(crate) fn array(&self) -> Type {
        match self.element {
            Type::INT2 => Type::INT2_ARRAY,
            Type::INT4 => Type::INT4_ARRAY,
            Type::INT8 => Type::INT8_ARRAY,
            Type::TEXT => Type::TEXT_ARRAY,
            _ => Type::BYTEA_ARRAY,
        }
    }

    pub(crate) fn int2(&mut self, value: i16) {
        self.bytes(&value.to_be_bytes());
    }

    pub(crate) fn int4(&mut self, value: i32) {
        self.bytes(&value.to_be_bytes());
    }

    pub(crate) fn int8(&mut self, value: u64) {
        self.bytes(&number(value).to_be_bytes());
    }

    /// Bytes, or a text.
    pub(crate) fn bytes(&mut self, value: &[u8]) {
        self.count += 1;
        self.bytes.put_i32(i32::try_from(value.len()).expect("a batch is bounded in bytes"));
        self.bytes.put_slice(value);
    }

    /// Bytes, or a text, or nothing.
    pub(crate) fn maybe(&mut self, value: Option<&[u8]>) {
        match value {
            Some(value) => self.bytes(value),
            None => {
                self.count += 1;
                self.has_null = true;
                self.bytes.put_i32(-1);
            }
        }
    }
}

impl ToSql for Column {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.put_i32(i32::from(self.count > 0));
        out.put_i32(i32::from(self.has_null));
        out.put_u32(self.element.oid());
        if self.count > 0 {
            out.put_i32(self.count);
            out.put_i32(1);
            out.put_slice(&self.bytes);
        }
        Ok(IsNull::No)
    }

    fn accepts(array: &Type) -> bool {
        matches!(array.kind(), Kind::Array(_))
    }

    to_sql_checked!();
}
