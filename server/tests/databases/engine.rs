//! The databases that facts are shown on, by what all of them can do.

use punctual_engines::{Maria, Postgres, Redis};

/// A private database.
pub trait Engine {
    /// The first word of what the server says of it.
    const PRODUCT: &'static str;

    fn start() -> Self;
    fn url(&self) -> String;
    /// With -9.
    fn kill(&mut self);
    /// On the same data.
    fn start_again(&mut self);
    /// Lets it hang.
    fn pause(&self);
    fn go_on(&self);
}

macro_rules! engines {
    ($($engine:ident, $product:literal;)*) => {$(
        impl Engine for $engine {
            const PRODUCT: &'static str = $product;

            fn start() -> $engine {
                $engine::start()
            }
            fn url(&self) -> String {
                $engine::url(self)
            }
            fn kill(&mut self) {
                punctual_engines::Engine::kill(self);
            }
            fn start_again(&mut self) {
                $engine::start_again(self);
            }
            fn pause(&self) {
                punctual_engines::Engine::pause(self);
            }
            fn go_on(&self) {
                punctual_engines::Engine::go_on(self);
            }
        }
    )*};
}

engines! {
    Postgres, "PostgreSQL";
    Maria, "MariaDB";
    Redis, "Redis";
}
