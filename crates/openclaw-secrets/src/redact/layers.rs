//! The known values, in layers, so that adding a value is cheap.
//!
//! A filter cannot be extended, only rebuilt, and rebuilding it over all values for each new one
//! took seconds for a few hundred values. So a new value gets its own small layer, which is merged
//! with the previous layer if that is less than twice as large. The number of layers, and of
//! rebuilds per value, is logarithmic in the number of values.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    filter::Filter,
    forms::{EncodedForm, forms_of},
};

/// All values, largest layer first.
#[derive(Default)]
pub(super) struct Layers(Vec<Layer>);

/// Values that are searched for together, each with its forms.
struct Layer {
    values: BTreeMap<String, Vec<Arc<EncodedForm>>>,
    filter: Option<Arc<Filter>>,
}

impl Layers {
    /// Adds values as one layer. Returns whether any was new.
    pub(super) fn add<'a>(&mut self, values: impl Iterator<Item = &'a str>) -> bool {
        let mut new = BTreeMap::new();
        for value in values {
            if !new.contains_key(value) && !self.contains(value) {
                new.insert(value.to_owned(), forms_of(value));
            }
        }
        if new.is_empty() {
            return false;
        }
        while let Some(layer) = self.0.pop_if(|layer| layer.values.len() < 2 * new.len()) {
            new.extend(layer.values);
        }
        self.0.push(Layer::new(new));
        true
    }

    /// Removes a value. Returns whether it was there.
    pub(super) fn remove(&mut self, value: &str) -> bool {
        let Some(layer) = self.0.iter_mut().find(|layer| layer.values.contains_key(value)) else {
            return false;
        };
        let mut values = std::mem::take(&mut layer.values);
        values.remove(value);
        *layer = Layer::new(values);
        self.0.retain(|layer| !layer.values.is_empty());
        true
    }

    /// Returns the filters to search with.
    pub(super) fn filters(&self) -> Vec<Arc<Filter>> {
        self.0.iter().filter_map(|layer| layer.filter.clone()).collect()
    }

    fn contains(&self, value: &str) -> bool {
        self.0.iter().any(|layer| layer.values.contains_key(value))
    }
}

impl Layer {
    fn new(values: BTreeMap<String, Vec<Arc<EncodedForm>>>) -> Self {
        let filter = Filter::new(values.values().flatten()).map(Arc::new);
        Self { values, filter }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_additions_leave_few_layers_and_every_value_in_exactly_one() {
        let mut layers = Layers::default();
        let values: Vec<String> = (0..200).map(|n| format!("value-{n}")).collect();
        for value in &values {
            assert!(layers.add([value.as_str()].into_iter()));
            assert!(!layers.add([value.as_str()].into_iter()));
            assert!(layers.0.is_sorted_by(|big, small| big.values.len() >= 2 * small.values.len()));
        }
        assert!(layers.filters().len() <= 8, "{} layers", layers.filters().len());
        assert_eq!(layers.0.iter().map(|layer| layer.values.len()).sum::<usize>(), 200);
        for value in &values {
            assert!(layers.remove(value));
            assert!(!layers.remove(value));
        }
        assert!(layers.filters().is_empty());
    }
}
