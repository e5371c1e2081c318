//! Entries that are known by their places: a place stays the same while its entry is there, and is used again
//! after that. Entering and leaving take as long with many entries as with few.

#[derive(Debug)]
pub(super) struct Entries<T> {
    places: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Entries<T> {
    fn default() -> Entries<T> {
        Entries { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Entries<T> {
    pub fn get(&self, place: u32) -> Option<&T> {
        self.places.get(place as usize)?.as_ref()
    }

    pub fn get_mut(&mut self, place: u32) -> Option<&mut T> {
        self.places.get_mut(place as usize)?.as_mut()
    }

    /// Takes an entry in; says its place.
    pub fn enter(&mut self, entry: T) -> u32 {
        if let Some(place) = self.free.pop() {
            self.places[place as usize] = Some(entry);
            return place;
        }
        self.places.push(Some(entry));
        u32::try_from(self.places.len() - 1).expect("there are fewer topics and queues than fill the memory")
    }

    pub fn remove(&mut self, place: u32) -> Option<T> {
        let entry = self.places.get_mut(place as usize)?.take()?;
        self.free.push(place);
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_used_again_once_its_entry_is_gone() {
        let mut entries = Entries::default();
        let places: Vec<u32> = ["a", "b", "c"].into_iter().map(|entry| entries.enter(entry)).collect();
        assert_eq!((entries.remove(places[1]), entries.remove(places[1])), (Some("b"), None));
        assert_eq!((entries.get(places[1]), entries.get(places[2])), (None, Some(&"c")));
        assert_eq!(entries.enter("d"), places[1]);
        assert_eq!(entries.enter("e"), 3);
    }
}
