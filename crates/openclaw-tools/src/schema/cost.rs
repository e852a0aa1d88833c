//! The cost of validating a value against a schema.
//!
//! A validator follows every reference for every value. A schema that refers to itself without
//! descending into the value never terminates; one that does so twice doubles the time with every
//! level of the value. Both are detected here, before a validator runs.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Unusable;
use super::shape::{AppliesTo, for_each_child};
use super::tidy::{NormalizedSchema, join, pointer_of};

/// Maximum length of a chain of schemas for the same value.
const MAX_CHAIN: usize = 32;
/// Maximum depth of a value that is validated.
pub(super) const MAX_VALUE_DEPTH: usize = 64;
/// Maximum number of steps for one value: some tens of milliseconds.
pub(super) const MAX_STEPS: u64 = 1 << 22;

/// Upper bound of the steps to validate one path of a value, by the value's depth.
#[derive(Debug)]
pub(super) struct Cost(Vec<u64>);

impl Cost {
    /// Computes the cost of a schema.
    ///
    /// # Errors
    /// If validation might not terminate, or need too much stack.
    pub(super) fn of(tidy: &NormalizedSchema) -> Result<Self, Unusable> {
        let mut graph = Graph::default();
        graph.add(&tidy.root, String::new());
        graph.link();
        graph.measure()
    }

    /// Returns an upper bound of the steps to validate a value with this many parts.
    pub(super) fn steps(&self, depth: usize, parts: usize) -> u64 {
        let a_path = if depth > MAX_VALUE_DEPTH {
            u64::MAX
        } else {
            // Beyond the last entry the cost is constant.
            self.0.get(depth).or(self.0.last()).copied().unwrap_or(u64::MAX)
        };
        a_path.saturating_mul(parts as u64)
    }
}

#[derive(Default)]
struct Graph {
    nodes: Vec<Node>,
    by_pointer: BTreeMap<String, usize>,
}

#[derive(Default)]
struct Node {
    /// Schemas for the same value.
    same: Vec<usize>,
    /// Schemas for parts of the value; at most one applies to a part.
    either: Vec<usize>,
    /// Schemas for parts of the value that always apply.
    also: Vec<usize>,
    reference: Option<String>,
    /// Length of the longest chain of schemas for the same value that starts here.
    chain: Option<usize>,
    is_on_the_way: bool,
}

impl Graph {
    fn add(&mut self, schema: &Value, pointer: String) -> usize {
        let number = self.nodes.len();
        self.nodes.push(Node::default());
        if let Value::Object(schema) = schema {
            let mut node = Node {
                reference: schema.get("$ref").and_then(Value::as_str).map(pointer_of),
                ..Node::default()
            };
            for_each_child(schema, |reach, steps, child| {
                let child = self.add(child, join(&pointer, steps));
                match reach {
                    AppliesTo::Same => node.same.push(child),
                    AppliesTo::PartEither => node.either.push(child),
                    AppliesTo::PartAlso => node.also.push(child),
                    AppliesTo::Nothing => {}
                }
            });
            if let Some(place) = self.nodes.get_mut(number) {
                *place = node;
            }
        }
        self.by_pointer.insert(pointer, number);
        number
    }

    fn link(&mut self) {
        for node in &mut self.nodes {
            let target = node.reference.take().and_then(|pointer| self.by_pointer.get(&pointer));
            node.same.extend(target);
        }
    }

    fn measure(mut self) -> Result<Cost, Unusable> {
        for number in 0..self.nodes.len() {
            self.chain(number, 0)?;
        }
        // Schemas for the same value come before those that depend on them.
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        order.sort_by_key(|number| self.nodes.get(*number).and_then(|node| node.chain));
        let mut of_parts = vec![0_u64; self.nodes.len()];
        let mut by_depth: Vec<u64> = Vec::new();
        for _ in 0..=MAX_VALUE_DEPTH {
            let costs = self.costs(&order, &of_parts);
            let root = costs.first().copied().unwrap_or_default();
            by_depth.push(root);
            if costs == of_parts || root > MAX_STEPS {
                break;
            }
            of_parts = costs;
        }
        Ok(Cost(by_depth))
    }

    /// Returns the longest chain from here. It is bounded, and so is the recursion.
    fn chain(&mut self, number: usize, length: usize) -> Result<usize, Unusable> {
        let Some(node) = self.nodes.get_mut(number) else { return Ok(0) };
        if let Some(chain) = node.chain {
            return Ok(chain);
        }
        if node.is_on_the_way {
            return Err(Unusable::Circular);
        }
        if length > MAX_CHAIN {
            return Err(Unusable::TooDeep);
        }
        node.is_on_the_way = true;
        let mut longest = 0;
        for next in node.same.clone() {
            longest = longest.max(1 + self.chain(next, length + 1)?);
        }
        if longest > MAX_CHAIN {
            return Err(Unusable::TooDeep);
        }
        if let Some(node) = self.nodes.get_mut(number) {
            node.chain = Some(longest);
            node.is_on_the_way = false;
        }
        Ok(longest)
    }

    /// Computes the steps for a value from those for its parts.
    fn costs(&self, order: &[usize], of_parts: &[u64]) -> Vec<u64> {
        let mut costs = vec![0_u64; self.nodes.len()];
        let look_up = |table: &[u64], number: &usize| table.get(*number).copied().unwrap_or(0);
        for number in order {
            let Some(node) = self.nodes.get(*number) else { continue };
            let either = node.either.iter().map(|part| look_up(of_parts, part)).max().unwrap_or(0);
            let also = node.also.iter().map(|part| look_up(of_parts, part));
            let same = node.same.iter().map(|same| look_up(&costs, same));
            let sum = also.chain(same).fold(1 + either.min(MAX_STEPS), |sum, cost| {
                // Saturate, so that the sums do not overflow.
                (sum + cost).min(2 * MAX_STEPS)
            });
            if let Some(place) = costs.get_mut(*number) {
                *place = sum;
            }
        }
        costs
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tidy::tidy;
    use super::*;

    fn cost(schema: &Value) -> Result<Cost, Unusable> {
        Cost::of(&tidy(schema.as_object().unwrap()).unwrap())
    }

    #[test]
    fn references_that_never_reach_a_part_of_the_value_are_refused() {
        for schema in [
            json!({"$ref": "#"}),
            json!({"allOf": [{"anyOf": [{"$ref": "#"}]}]}),
            json!({"properties": {"a": {"$ref": "#/$defs/a"}},
                "$defs": {"a": {"not": {"$ref": "#/$defs/b"}}, "b": {"$ref": "#/$defs/a"}}}),
        ] {
            assert_eq!(cost(&schema).unwrap_err(), Unusable::Circular);
        }
    }

    #[test]
    fn a_tree_costs_no_more_for_each_level() {
        let cost =
            cost(&json!({"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}})).unwrap();
        assert!(cost.steps(40, 1_000) < 200_000);
    }

    #[test]
    fn doubling_at_every_level_is_seen() {
        let cost = cost(&json!({"properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}}));
        let cost = cost.unwrap();
        assert!(cost.steps(5, 10) < 10_000);
        assert!(cost.steps(40, 40) > MAX_STEPS);
    }

    fn doublings(levels: usize) -> Value {
        let mut defs = serde_json::Map::new();
        for at in 0..levels {
            let next = format!("#/$defs/d{}", at + 1);
            defs.insert(format!("d{at}"), json!({"allOf": [{"$ref": next}, {"$ref": next}]}));
        }
        defs.insert(format!("d{levels}"), json!({"type": "string"}));
        json!({"$defs": defs, "properties": {"a": {"$ref": "#/$defs/d0"}}})
    }

    #[test]
    fn doubling_by_references_alone_is_seen() {
        assert_eq!(cost(&doublings(30)).unwrap_err(), Unusable::TooDeep);
        let cost = cost(&doublings(14)).unwrap();
        assert!(cost.steps(1, 2) > 1 << 14 && cost.steps(1, 2) < MAX_STEPS);
        assert!(cost.steps(1, 1_000) > MAX_STEPS);
    }
}
