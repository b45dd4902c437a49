//! Which objects are to be judged next: of each kind in turn, so that ten thousand pods do not keep one Deployment waiting.

use std::collections::VecDeque;

use super::ledger::{RecordNo, SourceNo};

/// Objects that wait to be judged. Whoever puts one in sees to it that it is there once.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// By the number of the source.
    lanes: Vec<VecDeque<RecordNo>>,
    next: usize,
    waiting: usize,
}

impl Queue {
    pub(super) fn push(&mut self, source: SourceNo, record: RecordNo) {
        let lane = usize::from(source);
        if self.lanes.len() <= lane {
            self.lanes.resize_with(lane + 1, VecDeque::new);
        }
        self.lanes[lane].push_back(record);
        self.waiting += 1;
    }

    pub(super) fn pop(&mut self) -> Option<RecordNo> {
        let lanes = self.lanes.len();
        let place = (0..lanes).map(|step| (self.next + step) % lanes).find(|place| !self.lanes[*place].is_empty())?;
        self.next = (place + 1) % lanes;
        self.waiting -= 1;
        self.lanes[place].pop_front()
    }

    pub(super) fn len(&self) -> usize {
        self.waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_take_turns() {
        let mut queue = Queue::default();
        for (source, record) in [(0, 1), (0, 2), (0, 3), (2, 4), (2, 5)] {
            queue.push(source, record);
        }
        assert_eq!(queue.len(), 5);
        let order: Vec<RecordNo> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!((order, queue.len()), (vec![1, 4, 2, 5, 3], 0));
    }
}
