//! The few distributions that comparisons need: Student's t, and Benjamini and Hochberg's rule.

/// Natural logarithm of the gamma function (Lanczos, g = 7), for arguments above 0.5.
fn ln_gamma(x: f64) -> f64 {
    const PARTS: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let mut sum = PARTS[0];
    for (at, part) in (1..).zip(&PARTS[1..]) {
        sum += part / (x + f64::from(at));
    }
    let t = x + 7.5;
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

/// Regularised incomplete beta function, by its continued fraction.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    let front =
        (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp();
    // The fraction converges quickly on this side only.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * fraction(a, b, x) / a
    } else {
        1.0 - front * fraction(b, a, 1.0 - x) / b
    }
}

fn fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let keep = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / keep(1.0 - (a + b) * x / (a + 1.0));
    let mut h = d;
    for m in 1..=300 {
        let m = f64::from(m);
        for top in [
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        ] {
            d = 1.0 / keep(1.0 + top * d);
            c = keep(1.0 + top / c);
            h *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-15 {
            break;
        }
    }
    h
}

/// Probability that |T| is at least |t|, with so many degrees of freedom.
#[must_use]
pub fn t_two_sided(t: f64, degrees: f64) -> f64 {
    if t.is_nan() {
        return 1.0;
    }
    incomplete_beta(degrees / 2.0, 0.5, degrees / (degrees + t * t))
}

/// The value that |T| stays below with a probability of 95 %.
#[must_use]
pub fn t_95(degrees: f64) -> f64 {
    t_quantile(0.05, degrees)
}

/// The value that |T| reaches with this probability.
fn t_quantile(two_sided: f64, degrees: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1e4);
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if t_two_sided(middle, degrees) > two_sided {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// Probability that |Z| of a standard normal is at least |z|.
#[must_use]
pub fn normal_two_sided(z: f64) -> f64 {
    // Student's distribution with very many degrees of freedom differs by less than 1e-9.
    t_two_sided(z, 1e9)
}

/// Derivative of the logarithm of the gamma function, of what is above nothing.
#[must_use]
pub fn digamma(mut x: f64) -> f64 {
    let mut shift = 0.0;
    while x < 8.0 {
        shift -= 1.0 / x;
        x += 1.0;
    }
    shift + x.ln() - 1.0 / (2.0 * x) - 1.0 / (12.0 * x.powi(2)) + 1.0 / (120.0 * x.powi(4))
}

/// Its own derivative.
#[must_use]
pub fn trigamma(mut x: f64) -> f64 {
    let mut shift = 0.0;
    while x < 8.0 {
        shift += 1.0 / (x * x);
        x += 1.0;
    }
    let odd = 1.0 / x + 1.0 / (6.0 * x.powi(3)) - 1.0 / (30.0 * x.powi(5));
    shift + odd + 1.0 / (2.0 * x * x)
}

/// Where that has this value, between a tenth and fifty.
#[must_use]
pub fn inverse_trigamma(value: f64) -> f64 {
    let (mut low, mut high) = (0.1, 50.0);
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if trigamma(middle) > value {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// The q value of each p value: the smallest false discovery rate at which it counts.
#[must_use]
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*b].total_cmp(&p[*a]));
    let (mut q, mut least) = (vec![1.0; p.len()], 1.0_f64);
    for (at, index) in order.into_iter().enumerate() {
        let rank = (p.len() - at) as f64;
        least = least.min(p[index] * p.len() as f64 / rank);
        q[index] = least;
    }
    q
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-6
    }

    /// Values of R 4.2: `2 * pt(-t, df)` and `qt(.975, df)`.
    #[test]
    fn probabilities_are_those_of_r() {
        for (t, degrees, p) in [
            (1.0, 1.0, 0.5),
            (2.0, 4.0, 0.116_116_523_516_816),
            (2.776_445_105_197_79, 4.0, 0.05),
            (3.0, 8.0, 0.017_071_681_233_782_6),
            (0.5, 12.0, 0.626_117_547_893_77),
            (5.0, 22.0, 5.284_5e-5),
            (-2.0, 4.0, 0.116_116_523_516_816),
            (0.0, 7.0, 1.0),
        ] {
            assert!(
                near(t_two_sided(t, degrees), p),
                "t({t}, {degrees}) = {}",
                t_two_sided(t, degrees)
            );
        }
        for (degrees, t) in [
            (4.0, 2.776_445_105),
            (8.0, 2.306_004_135),
            (12.0, 2.178_812_830),
            (1e9, 1.959_963_985),
        ] {
            assert!(near(t_95(degrees), t), "{degrees}: {}", t_95(degrees));
        }
        assert!(near(normal_two_sided(1.959_963_985), 0.05));
    }

    /// Values of scipy 1.17: `2 * t.sf(x, df)`, `t.ppf(.975, df)`, `false_discovery_control`; far tails are as near as the rest.
    #[test]
    fn probabilities_are_those_of_scipy() {
        let is_near = |a: f64, b: f64| (a / b - 1.0).abs() <= 1e-6;
        for (t, degrees, p) in [
            (0.3, 3.5, 0.781_133_409_839_889_5),
            (1.7, 6.0, 0.140_039_654_624_897_4),
            (2.5, 8.0, 0.036_942_037_713_624_12),
            (4.2, 11.0, 0.001_485_584_612_954_316),
            (0.01, 5.0, 0.992_408_018_042_581_9),
            (9.5, 22.0, 3.044_044_205_772e-9),
            (31.0, 6.0, 7.482_340_290_487_757e-8),
            (1e-5, 40.0, 0.999_992_070_861_506_1),
            (2.1, 1000.0, 0.035_978_874_310_781_97),
        ] {
            let found = t_two_sided(t, degrees);
            assert!(is_near(found, p), "t({t}, {degrees}) = {found}");
        }
        for (degrees, t) in [
            (4.0, 2.776_445_105_197_793),
            (6.0, 2.446_911_851_144_979),
            (22.0, 2.073_873_067_904_025),
            (100.0, 1.983_971_518_523_552),
        ] {
            assert!(is_near(t_95(degrees), t), "{degrees}: {}", t_95(degrees));
        }
        let q = benjamini_hochberg(&[0.001, 0.2, 0.011, 0.04, 0.5, 0.012, 0.9]);
        let wanted = [0.007, 0.28, 0.028, 0.07, 0.583_333_333_333, 0.028, 0.9];
        assert!(
            q.iter().zip(wanted).all(|(q, wanted)| is_near(*q, wanted)),
            "{q:?}"
        );
    }

    /// Values of scipy 1.17: `digamma(x)`, `polygamma(1, x)`.
    #[test]
    fn gamma_functions_are_those_of_scipy() {
        for (x, first, second) in [
            (0.5, -1.963510026, 4.934802201),
            (1.0, -0.577215665, 1.644934067),
            (2.0, 0.422784335, 0.644934067),
            (4.5, 1.388870926, 0.248725103),
            (9.0, 2.140641478, 0.117512015),
        ] {
            let (a, b) = (digamma(x), trigamma(x));
            assert!(near(a, first) && near(b, second), "{x}: {a}, {b}");
            assert!((inverse_trigamma(second) / x - 1.0).abs() < 1e-5, "{x}");
        }
    }

    /// `p.adjust(c(.01, .02, .03, .5), "BH")`
    #[test]
    fn false_discoveries_are_those_of_r() {
        let q = benjamini_hochberg(&[0.5, 0.01, 0.03, 0.02]);
        assert!(
            near(q[0], 0.5) && near(q[1], 0.04) && near(q[2], 0.04) && near(q[3], 0.04),
            "{q:?}"
        );
    }
}
