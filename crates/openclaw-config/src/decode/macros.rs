//! Macros that declare sections and choices.

/// Declares a raw section of the configuration: for each field its key, the synonyms of the key,
/// its type, its documentation, and after `=>` a schema constraint beyond the type. After `;` stands
/// the function that decodes shorter forms of the section; for others it returns `None`.
macro_rules! section {
    (
        $(#[doc = $doc:literal])*
        struct $name:ident ($what:literal, $unknown:ident $(, $refine:path)? $(; $short:path)?) {
            $( $(#[doc = $field_doc:literal])* $field:ident: $type:ty = $key:literal $(| $synonym:literal)* $(=> $shape:path)?, )*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Default)]
        pub(crate) struct $name {
            $( $(#[doc = $field_doc])* pub(crate) $field: $crate::decode::Field<$type>, )*
        }

        impl $crate::decode::Decode for $name {
            fn decode(node: &$crate::tree::ConfigNode, cx: &mut $crate::decode::Decoder<'_>) -> Option<Self> {
                $( if let Some(decoded) = $short(node, cx) { return decoded; } )?
                let mut section = Self::default();
                for member in cx.object(node, $what)? {
                    match member.key.as_str() {
                        $( $key $(| $synonym)* => cx.field(&mut section.$field, $key, member), )*
                        _ => cx.unknown(member, &[$($key),*], $crate::decode::Unknown::$unknown),
                    }
                }
                Some(section)
            }
        }

        impl $crate::decode::Overlay for $name {
            fn overlaid_by(self, later: Self) -> Self {
                Self { $( $field: self.$field.overlaid_by(later.$field), )* }
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).trim_start_matches("Raw").into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let mut section = $crate::schema::SectionSchema::new(concat!($($doc, "\n"),*));
                $(
                    let schema = generator.subschema_for::<$type>();
                    #[allow(unused_mut, unused_assignments)]
                    let mut shape: Option<$crate::schema::Shape> = None;
                    $( shape = Some($shape); )?
                    let doc = concat!($($field_doc, "\n"),*);
                    section.property($key, schema, doc, &[$($synonym),*], shape);
                )*
                let open = matches!($crate::decode::Unknown::$unknown, $crate::decode::Unknown::Leave);
                #[allow(unused_mut)]
                let mut schema = section.finish(open);
                $( $refine(&mut schema); )?
                schema
            }
        }
    };
}

/// Declares a setting that takes one of a fixed set of words, each with its synonyms.
macro_rules! choice {
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident { $( $(#[$variant_meta:meta])* $variant:ident = $word:literal $(| $synonym:literal)*, )* }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        $vis enum $name { $( $(#[$variant_meta])* $variant, )* }

        impl $name {
            /// Returns the word for it in a configuration.
            $vis const fn as_str(self) -> &'static str {
                match self { $( Self::$variant => $word, )* }
            }
        }

        impl $crate::decode::Decode for $name {
            fn decode(node: &$crate::tree::ConfigNode, cx: &mut $crate::decode::Decoder<'_>) -> Option<Self> {
                let words = [$($word),*];
                let $crate::tree::ConfigValue::String(written) = &node.value else {
                    cx.wrong_type(node, &format!("a string, one of {}", words.join(", ")));
                    return None;
                };
                match written.as_str() {
                    $( $word $(| $synonym)* => Some(Self::$variant), )*
                    other => {
                        let message = format!("expected one of {}", words.join(", "));
                        let mut found = $crate::diagnostic::Diagnostic::error(message)
                            .at(node.at, "not one of these");
                        if let Some(similar) = $crate::suggest::nearest(other, &words) {
                            found = found.help(format!("did you mean `{similar}`?"));
                        }
                        cx.report(found);
                        None
                    }
                }
            }
        }

        impl $crate::decode::Overlay for $name {}

        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "enum": [$($word $(, $synonym)*),*] })
            }
        }
    };
}

pub(crate) use {choice, section};
