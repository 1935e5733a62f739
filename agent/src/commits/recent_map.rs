//! A map with a bound: when there are too many new entries, those are forgotten that were neither
//! set nor asked for since that happened last.

use std::collections::BTreeMap;

/// At most twice `MOST` entries.
#[derive(Debug)]
pub struct RecentMap<Key, Value, const MOST: usize> {
    newer: BTreeMap<Key, Value>,
    older: BTreeMap<Key, Value>,
}

impl<Key, Value, const MOST: usize> Default for RecentMap<Key, Value, MOST> {
    fn default() -> Self {
        RecentMap { newer: BTreeMap::new(), older: BTreeMap::new() }
    }
}

impl<Key: Ord, Value, const MOST: usize> RecentMap<Key, Value, MOST> {
    /// Sets an entry; gives those that are forgotten for it.
    pub fn insert(&mut self, key: Key, value: Value) -> BTreeMap<Key, Value> {
        self.older.remove(&key);
        let mut forgotten = BTreeMap::new();
        if self.newer.len() >= MOST && !self.newer.contains_key(&key) {
            forgotten = std::mem::replace(&mut self.older, std::mem::take(&mut self.newer));
        }
        self.newer.insert(key, value);
        forgotten
    }

    /// Asks for an entry, which is new again.
    pub fn get(&mut self, key: &Key) -> Option<&Value> {
        if let Some((key, value)) = self.older.remove_entry(key) {
            self.newer.insert(key, value);
        }
        self.newer.get(key)
    }

    /// Looks at an entry, which gets no newer by that.
    pub fn peek(&self, key: &Key) -> Option<&Value> {
        self.newer.get(key).or_else(|| self.older.get(key))
    }

    /// Takes an entry out.
    pub fn remove(&mut self, key: &Key) -> Option<Value> {
        self.newer.remove(key).or_else(|| self.older.remove(key))
    }

    /// Forgets the entries but those with such values.
    pub fn retain(&mut self, is_kept: impl Fn(&Value) -> bool) {
        self.newer.retain(|_, value| is_kept(value));
        self.older.retain(|_, value| is_kept(value));
    }

    /// All values, in no order.
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        self.newer.values().chain(self.older.values())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recent_map_keeps_what_is_asked_for_and_stays_small() {
        let mut map = RecentMap::<u32, u32, 10>::default();
        let mut forgotten = 0;
        for number in 0..1000 {
            forgotten += map.insert(number, number).len();
            assert_eq!(map.get(&0), Some(&0), "{number}");
            assert!(map.values().count() <= 20);
            assert_eq!(map.values().count() + forgotten, number as usize + 1);
        }
        assert_eq!((map.peek(&999), map.peek(&900)), (Some(&999), None));
        assert_eq!((map.remove(&999), map.remove(&999)), (Some(999), None));
    }
}
