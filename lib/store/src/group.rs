//! Groups of successive items, limited in number and bytes.

/// The limits of one group.
pub(crate) struct Bounds {
    pub(crate) items: usize,
    pub(crate) bytes: usize,
}

impl Bounds {
    /// Splits `items` in their order into as few groups as the limits allow. An item above the byte limit is a group of
    /// its own.
    pub(crate) fn groups<'t, T>(&self, items: &'t [T], bytes_of: impl Fn(&T) -> usize) -> Vec<&'t [T]> {
        let mut groups = Vec::new();
        let (mut begin, mut bytes) = (0, 0);
        for (i, item) in items.iter().enumerate() {
            let size = bytes_of(item);
            if i > begin && (i - begin == self.items || bytes + size > self.bytes) {
                groups.push(&items[begin..i]);
                (begin, bytes) = (i, 0);
            }
            bytes += size;
        }
        groups.extend(items.get(begin..).filter(|rest| !rest.is_empty()));
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_keep_the_order_and_are_as_large_as_the_limits_allow() {
        let bounds = Bounds { items: 3, bytes: 100 };
        let bytes = |group: &[usize]| group.iter().sum::<usize>();
        // Each list of up to seven of these sizes.
        let lists = (0..4_usize.pow(7))
            .map(|number| (0..7).map(|place| [0, 40, 60, 150][number / 4_usize.pow(place) % 4]).collect::<Vec<_>>());
        for list in lists.flat_map(|list| (0..=7).map(move |length| list[..length].to_vec())) {
            let groups = bounds.groups(&list, |size| *size);
            assert_eq!(groups.concat(), list);
            for group in &groups {
                assert!((1..=3).contains(&group.len()) && (group.len() == 1 || bytes(group) <= 100), "{groups:?}");
            }
            for pair in groups.windows(2) {
                assert!(pair[0].len() == 3 || bytes(pair[0]) + pair[1][0] > 100, "{groups:?}");
            }
        }
    }
}
