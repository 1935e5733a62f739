//! How much memory a plan takes of what may grow faster than the rows of the recording: what calls
//! wait for and have in common, descriptors that processes have copied, texts.

use super::scene::Scene;
use crate::script::order::Resource;
use crate::script::plan::{PlanText, Wait};

/// What a descriptor takes that a new process has copied: in its table, of its own, and as a step.
const COPY_BYTES: usize = 96;
/// What each thing takes that calls have in common: with the call, and in the order.
const RESOURCE_BYTES: usize = 48;

/// The sum so far.
#[derive(Debug, Default)]
pub struct GrownBytes {
    most: usize,
    of_order: usize,
    of_texts: usize,
    texts: usize,
}

impl GrownBytes {
    /// Nothing so far, of so much at most.
    pub fn of_most(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// A step waits for others, and has things in common with others.
    pub fn add(&mut self, waits: &[Wait], resources: &[Resource]) {
        self.of_order += size_of_val(waits) + resources.len() * RESOURCE_BYTES;
    }

    /// Whether the sum with what is in the scene is more than it may be.
    pub fn is_too_much(&mut self, scene: &Scene) -> bool {
        for text in &scene.texts[self.texts..] {
            let (PlanText::Plain(text) | PlanText::Inside(text)) = text;
            self.of_texts += text.len() + size_of::<PlanText>();
        }
        self.texts = scene.texts.len();
        self.of_order + self.of_texts + scene.tables.copied * COPY_BYTES > self.most
    }
}
