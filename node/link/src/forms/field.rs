//! How a value stands in a field of a form, and the three ways to say so for a type.

use super::Unclear;

/// A field that can hold a `T`.
pub(super) trait Field<T>: Sized {
    /// The field for a value.
    fn put(value: &T) -> Self;
    /// The value of a field.
    fn take(self) -> Result<T, Unclear>;
}

impl<T, F: Field<T>> Field<Option<T>> for Option<F> {
    fn put(value: &Option<T>) -> Option<F> {
        value.as_ref().map(F::put)
    }
    fn take(self) -> Result<Option<T>, Unclear> {
        self.map(F::take).transpose()
    }
}

impl<T, F: Field<T>> Field<Vec<T>> for Vec<F> {
    fn put(value: &Vec<T>) -> Vec<F> {
        value.iter().map(F::put).collect()
    }
    fn take(self) -> Result<Vec<T>, Unclear> {
        self.into_iter().map(F::take).collect()
    }
}

impl<T, F: Field<T>> Field<Box<T>> for F {
    fn put(value: &Box<T>) -> F {
        F::put(value)
    }
    fn take(self) -> Result<Box<T>, Unclear> {
        F::take(self).map(Box::new)
    }
}

/// Of the form of an enum: which kinds there are, so that tests miss none.
#[cfg(test)]
pub(super) trait Kinds {
    const KINDS: &'static [&'static str];
    fn kind(&self) -> &'static str;
}

/// A form within another one is optional in protobuf; here it must be there.
macro_rules! needed {
    ($form:ty, $value:ty) => {
        impl Field<$value> for Option<$form> {
            fn put(value: &$value) -> Self {
                Some(Field::put(value))
            }
            fn take(self) -> Result<$value, Unclear> {
                self.ok_or_else(Unclear::missing).and_then(Field::take)
            }
        }
    };
}

/// The form of a struct: its fields by their names. One that is forgotten does not compile.
macro_rules! form {
    ($form:ident of $value:ident { $(#[prost($($attr:tt)*)] $field:ident: $type:ty,)* }) => {
        #[derive(prost::Message)]
        pub(super) struct $form { $(#[prost($($attr)*)] pub(super) $field: $type,)* }

        impl Field<$value> for $form {
            fn put(value: &$value) -> Self {
                let $value { $($field),* } = value;
                $form { $($field: Field::put($field)),* }
            }
            fn take(self) -> Result<$value, Unclear> {
                Ok($value { $($field: Field::take(self.$field).map_err(|unclear| unclear.within(stringify!($field)))?),* })
            }
        }
        needed!($form, $value);
    };
}

/// The form of an enum: a form for each variant, of which one is there. Variants have fields by name, or `(one)` that is
/// given a name here, or none. A variant that is forgotten does not compile.
macro_rules! choice {
    ($form:ident in $module:ident of $value:ty, $path:ident {
        $($tag:tt $variant:ident
            $({ $(#[prost($($attr:tt)*)] $field:ident: $type:ty,)* })?
            $((#[prost($($one_attr:tt)*)] $one:ident: $one_type:ty))?,
        )*
    }) => {
        pub(super) use $module::Form as $form;

        pub(super) mod $module {
            use super::*;

            #[derive(prost::Message)]
            pub(in super::super) struct Form {
                #[prost(oneof(Kind), tags($($tag),*))]
                pub(in super::super) kind: Option<Kind>,
            }

            #[derive(prost::Oneof)]
            #[allow(clippy::large_enum_variant, reason = "it is there for a moment, on its way to or from the bytes")]
            pub(in super::super) enum Kind {
                $(#[prost(message, tag = $tag)] $variant($variant),)*
            }

            $(#[derive(prost::Message)]
            pub(in super::super) struct $variant {
                $($(#[prost($($attr)*)] pub(in super::super) $field: $type,)*)?
                $(#[prost($($one_attr)*)] pub(in super::super) $one: $one_type,)?
            })*

            impl Field<$value> for Form {
                fn put(value: &$value) -> Form {
                    let kind = match value {
                        $($path::$variant { $($($field,)*)? $(0: $one,)? } => Kind::$variant($variant {
                            $($($field: Field::put($field),)*)?
                            $($one: Field::put($one),)?
                        }),)*
                    };
                    Form { kind: Some(kind) }
                }

                fn take(self) -> Result<$value, Unclear> {
                    Ok(match self.kind.ok_or_else(Unclear::missing)? {
                        $(Kind::$variant(_kind) => $path::$variant {
                            $($($field: Field::take(_kind.$field)
                                .map_err(|unclear| unclear.within(stringify!($field)).within(stringify!($variant)))?,)*)?
                            $(0: Field::take(_kind.$one)
                                .map_err(|unclear| unclear.within(stringify!($one)).within(stringify!($variant)))?,)?
                        },)*
                    })
                }
            }
            needed!(Form, $value);

            #[cfg(test)]
            impl super::super::field::Kinds for Form {
                const KINDS: &'static [&'static str] = &[$(stringify!($variant)),*];
                fn kind(&self) -> &'static str {
                    match self.kind.as_ref().expect("it was put there") {
                        $(Kind::$variant(_) => stringify!($variant),)*
                    }
                }
            }
        }
    };
}

/// The numbers of an enum without fields, from 1 on: zero is what is not there.
macro_rules! numbered {
    ($value:ident { $($number:literal $variant:ident,)* }) => {
        impl Field<$value> for u32 {
            fn put(value: &$value) -> u32 {
                match value { $($value::$variant => $number,)* }
            }
            fn take(self) -> Result<$value, Unclear> {
                match self {
                    $($number => Ok($value::$variant),)*
                    other => Err(Unclear::because(format_args!("{other} is none that this version knows"))),
                }
            }
        }
    };
}
