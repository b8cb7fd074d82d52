//! A persistent hash map. A clone shares all entries; a change copies one shard.
//!
//! With 50,000 tables, a commit copies about 200 entries instead of 50,000.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use rustc_hash::FxBuildHasher;

const SHARDS: usize = 256;

type Shard<K, V> = Arc<HashMap<K, V, FxBuildHasher>>;

#[derive(Debug)]
pub(crate) struct ShardedMap<K, V> {
    shards: Arc<Vec<Shard<K, V>>>,
}

impl<K, V> Clone for ShardedMap<K, V> {
    fn clone(&self) -> Self {
        Self { shards: Arc::clone(&self.shards) }
    }
}

impl<K, V> Default for ShardedMap<K, V> {
    fn default() -> Self {
        let empty = Arc::new(HashMap::default());
        Self { shards: Arc::new(vec![empty; SHARDS]) }
    }
}

impl<K: Hash + Eq + Clone, V: Clone> ShardedMap<K, V> {
    fn shard_of<Q: Hash + ?Sized>(key: &Q) -> usize {
        // Uses the upper bits, because the inner map uses the lower bits.
        (FxBuildHasher.hash_one(key) >> 40) as usize % SHARDS
    }

    pub(crate) fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.shards[Self::shard_of(key)].get(key)
    }

    pub(crate) fn insert(&mut self, key: K, value: V) {
        let index = Self::shard_of(&key);
        let shard = &mut Arc::make_mut(&mut self.shards)[index];
        Arc::make_mut(shard).insert(key, value);
    }

    pub(crate) fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let index = Self::shard_of(key);
        let shard = &mut Arc::make_mut(&mut self.shards)[index];
        Arc::make_mut(shard).remove(key)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.shards.iter().flat_map(|shard| shard.iter())
    }
}
