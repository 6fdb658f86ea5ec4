//! Finds the blocks of calls in a text, and reads their parts.

/// The beginnings and the ends of the blocks of calls.
const BLOCKS: [(&str, &str); 2] = [("<tool-use", "</tool-use>"), ("<details>", "</details>")];

/// The label of a tool's answer in a call that is no block.
pub(super) const RESULT: &str = "\nResult:\n";

/// Returns the text before the next tool call, the call, and the text after the call.
pub(super) fn next_call(text: &str) -> Option<(&str, &str, &str)> {
    let tag = |(start, _)| {
        BLOCKS.iter().find(|(open, _)| text[start..].starts_with(open)).map(|(_, close)| (start, close))
    };
    let (start, close) = text.match_indices('<').find_map(tag)?;
    let end = text[start..].find(close).map_or(text.len(), |end| start + end + close.len());
    Some((&text[..start], &text[start..end], &text[end..]))
}

/// Returns the summary of a call in one line, and its output.
pub(super) fn summary(call: &str) -> (String, &str) {
    let Some((_, rest)) = call.split_once("<summary>") else { return (String::new(), call) };
    let (summary, output) = rest.split_once("</summary>").unwrap_or((rest, ""));
    let summary = summary.replace(['*', '`'], "").replace("Tool use: ", "");
    let output = output.split("</details>").next().unwrap_or_default();
    (summary.split_whitespace().collect::<Vec<_>>().join(" "), output)
}

/// Returns the block of JSON after a label, such as `Parameters:`.
pub(super) fn json<'a>(output: &'a str, label: &str) -> Option<&'a str> {
    let (_, rest) = output.split_once(label)?;
    let (fence, rest) = rest.trim_start().split_once("json\n").filter(|(fence, _)| is_fence(fence))?;
    Some(rest.split_once(&format!("\n{fence}"))?.0)
}

fn is_fence(text: &str) -> bool {
    text.len() >= 3 && text.bytes().all(|byte| byte == b'`')
}

/// Returns the value of an attribute of the block of a call; `None` if it is missing or empty.
pub(super) fn attribute(call: &str, name: &str) -> Option<String> {
    let (_, rest) = call.split_once(&format!("{name}=\""))?;
    rest.split('"').next().filter(|name| !name.is_empty()).map(str::to_owned)
}
