//! Plots, drawn on the server as SVG by `plotters`.
//!
//! A plot has a title, a description, a legend and a table of its values, so nobody needs to see it. `plotters` writes
//! colours as attributes of elements, which a style may override: each series has a colour that stands for its number
//! ([`SERIES`]), and the style gives it a colour for light and for dark. Only numbers and dates are drawn; names of
//! providers and other texts are in the legend and in the table, where maud escapes them.

use maud::{Markup, PreEscaped, html};
use plotters::prelude::*;

use super::text::plain;

/// The size of a plot. The text of a larger plot would be too small on a phone.
const SIZE: (u32, u32) = (440, 200);

/// The colours that stand for the series. The style has the same values.
const SERIES: [RGBColor; 6] = [
    RGBColor(1, 1, 1),
    RGBColor(2, 2, 2),
    RGBColor(3, 3, 3),
    RGBColor(4, 4, 4),
    RGBColor(5, 5, 5),
    RGBColor(6, 6, 6),
];

/// The colour of the axes.
const AXIS: RGBColor = RGBColor(9, 9, 9);

/// The most labels below a plot.
const LABELS: usize = 5;

/// The shape of a plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Bars, the series on top of each other.
    Bars,
    /// Lines.
    Lines,
}

/// The values of one kind, one for each label of the plot.
#[derive(Clone, Debug)]
pub struct Series {
    /// What the values are.
    pub name: String,
    /// The values.
    pub values: Vec<f64>,
}

/// A plot of values over labels, mostly dates.
#[derive(Clone, Debug)]
pub struct Plot {
    /// The title.
    pub title: &'static str,
    /// What the plot says, in a sentence.
    pub description: String,
    /// What the labels are, such as `Week`.
    pub axis: &'static str,
    /// The labels, one for each value.
    pub labels: Vec<String>,
    /// The series, at most six: further ones have the colour of the last.
    pub series: Vec<Series>,
    /// The shape.
    pub shape: Shape,
}

impl Plot {
    /// Returns the plot with its legend and table.
    pub fn show(&self) -> Markup {
        let is_empty =
            self.labels.is_empty() || self.series.iter().all(|each| each.values.iter().all(|v| *v == 0.0));
        html! {
            figure.plot {
                figcaption { (self.title) }
                @if is_empty {
                    p.none { "Nothing to show yet." }
                } @else {
                    p.note { (plain(&self.description)) }
                    @if let Some(drawn) = self.draw() {
                        svg viewBox=(format!("0 0 {} {}", SIZE.0, SIZE.1)) role="img"
                            aria-label=(format!("{}. {}", self.title, plain(&self.description))) {
                            (PreEscaped(drawn))
                        }
                    }
                    @if self.series.len() > 1 { (self.legend()) }
                    (self.table())
                }
            }
        }
    }

    fn legend(&self) -> Markup {
        html! {
            ul.legend {
                @for (place, series) in self.series.iter().enumerate() {
                    li { span class=(format!("key key-{}", (place + 1).min(SERIES.len()))) {} (plain(&series.name)) }
                }
            }
        }
    }

    fn table(&self) -> Markup {
        html! {
            details {
                summary { "Values" }
                div.scroll tabindex="0" role="region" aria-label=(format!("{}: values", self.title)) {
                    table {
                        thead {
                            tr {
                                th scope="col" { (self.axis) }
                                @for series in &self.series { th.number scope="col" { (plain(&series.name)) } }
                            }
                        }
                        tbody {
                            @for (place, label) in self.labels.iter().enumerate() {
                                tr {
                                    th scope="row" { (plain(label)) }
                                    @for series in &self.series {
                                        td.number { (number(series.values.get(place).copied().unwrap_or(0.0))) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    /// Returns the inside of the SVG; `None` if it can't be drawn, and the table has to do.
    fn draw(&self) -> Option<String> {
        let mut text = String::new();
        self.draw_into(&mut text).ok()?;
        let start = text.find("<svg")?;
        let inside = &text[start + text[start..].find('>')? + 1..];
        Some(inside.strip_suffix("</svg>\n").or_else(|| inside.strip_suffix("</svg>"))?.to_owned())
    }

    fn draw_into(&self, text: &mut String) -> Result<(), DrawingAreaErrorKind<std::io::Error>> {
        let root = SVGBackend::with_string(text, SIZE).into_drawing_area();
        let count = self.labels.len();
        let mut chart = ChartBuilder::on(&root)
            .margin(4)
            .margin_right(12)
            .x_label_area_size(22)
            .y_label_area_size(46)
            .build_cartesian_2d((0..count.saturating_sub(1)).into_segmented(), 0.0..self.most() * 1.05)?;
        let label = |at: &SegmentValue<usize>| match at {
            SegmentValue::CenterOf(at) => self.labels.get(*at).cloned().unwrap_or_default(),
            _ => String::new(),
        };
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(AXIS)
            .axis_style(AXIS)
            .x_labels(count.min(LABELS))
            .x_label_formatter(&label)
            .y_labels(4)
            .y_label_formatter(&|value| number(*value))
            .label_style(("sans-serif", 12).into_font())
            .draw()?;
        let points = |series: &Series| -> Vec<(usize, f64)> {
            series.values.iter().take(count).copied().enumerate().collect()
        };
        let mut below = vec![0.0; count];
        for (place, series) in self.series.iter().enumerate() {
            let colour = SERIES[place.min(SERIES.len() - 1)];
            if self.shape == Shape::Lines {
                let at = |(at, value)| (SegmentValue::CenterOf(at), value);
                chart.draw_series(LineSeries::new(
                    points(series).into_iter().map(at),
                    colour.stroke_width(2),
                ))?;
                let dot = |point| Circle::new(at(point), 3, colour.filled());
                chart.draw_series(points(series).into_iter().map(dot))?;
                continue;
            }
            let bars = points(series).into_iter().filter(|(_, value)| *value > 0.0).map(|(at, value)| {
                let bottom = below[at];
                below[at] += value;
                let end = if at + 1 < count { SegmentValue::Exact(at + 1) } else { SegmentValue::Last };
                let corners = [(SegmentValue::Exact(at), bottom), (end, bottom + value)];
                let mut bar = Rectangle::new(corners, colour.filled());
                let gap = if count > 60 { 0 } else { 2 };
                bar.set_margin(0, 0, gap, gap);
                bar
            });
            chart.draw_series(bars.collect::<Vec<_>>())?;
        }
        root.present()?;
        drop(chart);
        Ok(())
    }

    /// Returns the largest value that is drawn.
    fn most(&self) -> f64 {
        let value = |series: &Series, at: usize| series.values.get(at).copied().unwrap_or(0.0).max(0.0);
        let at = |place| -> f64 {
            match self.shape {
                Shape::Bars => self.series.iter().map(|series| value(series, place)).sum(),
                Shape::Lines => self.series.iter().map(|series| value(series, place)).fold(0.0, f64::max),
            }
        };
        let most = (0..self.labels.len()).map(at).fold(0.0, f64::max);
        if most.is_finite() && most > 0.0 { most } else { 1.0 }
    }
}

/// Returns a value for an axis or a table: whole if it is large, otherwise with as many digits as say something.
fn number(value: f64) -> String {
    match value.abs() {
        large if large >= 1_000_000.0 => format!("{:.1}M", value / 1_000_000.0),
        large if large >= 10_000.0 => format!("{:.0}k", value / 1_000.0),
        whole if whole >= 10.0 || value.fract() == 0.0 => format!("{value:.0}"),
        small if small >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(labels: usize, values: Vec<f64>, shape: Shape) -> Plot {
        Plot {
            title: "Memories",
            description: "More <each> week.".to_owned(),
            axis: "Week",
            labels: (0..labels).map(|week| format!("2026-W{week:02}")).collect(),
            series: vec![
                Series { name: "<script>".to_owned(), values: values.clone() },
                Series { name: "commits".to_owned(), values },
            ],
            shape,
        }
    }

    #[test]
    fn a_plot_has_a_title_a_description_and_its_values() {
        for shape in [Shape::Bars, Shape::Lines] {
            let html = plot(3, vec![1.0, 2.5, 1200.0], shape).show().into_string();
            for part in [
                "<figcaption>Memories</figcaption>",
                "More &lt;each&gt; week.",
                "role=\"img\"",
                "2026-W01",
                "1200",
            ] {
                assert!(html.contains(part), "{part}: {html}");
            }
            assert!(html.contains("#010101") && html.contains("#020202") && !html.contains("<script>"));
            assert!(!html.contains(" style=") && html.matches("<svg").count() == 1);
        }
    }

    #[test]
    fn odd_values_are_no_fault() {
        for values in [vec![], vec![0.0], vec![f64::MAX, 1.0], vec![1.0; 400]] {
            for labels in [0, 1, 2, 400] {
                let html = plot(labels, values.clone(), Shape::Bars).show().into_string();
                assert!(html.contains("Memories"));
            }
        }
    }
}
