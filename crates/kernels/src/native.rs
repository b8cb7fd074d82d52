//! Numeric column types that the kernels support.

/// A fixed-width number.
pub trait Native: Copy + PartialOrd + Default + Send + Sync + 'static {
    /// Converts to a double. Exact except for large 64-bit integers.
    fn to_f64(self) -> f64;
    /// Converts to a 64-bit integer. Fractions are truncated.
    fn to_i64(self) -> i64;
}

macro_rules! native {
    ($($name:ty),*) => {$(
        impl Native for $name {
            // Types with lossless casts share the macro body with types whose casts are lossy.
            #[allow(clippy::cast_lossless)]
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
            #[allow(clippy::cast_lossless)]
            #[inline(always)]
            fn to_i64(self) -> i64 {
                self as i64
            }
        }
    )*};
}

native!(i8, i16, i32, i64, u16, u32, f32, f64);
