/** A strict parser of the Prometheus text format 0.0.4. */

/** A sample. Samples of a histogram have the metric's name with a suffix. */
export interface Sample {
  name: string
  labels: Record<string, string>
  value: number
}

export interface Metric {
  type: 'counter' | 'gauge' | 'histogram' | 'summary'
  help: string
  samples: Sample[]
}

const metricName = '[a-zA-Z_:][a-zA-Z0-9_:]*'
const label = String.raw`[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*"`
const sampleLine = new RegExp(
  String.raw`^(${metricName})(?:\{(${label}(?:,${label})*)\})? (NaN|[+-]Inf|[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?)$`,
)
const suffixes = {
  counter: /^$/,
  gauge: /^$/,
  histogram: /^(_bucket|_sum|_count)$/,
  summary: /^(|_sum|_count)$/,
} as const

/** Parses metrics by name. Throws for invalid text. */
export function parseMetrics(text: string): Map<string, Metric> {
  if (!text.endsWith('\n')) throw new Error('The last line does not end.')
  const metrics = new Map<string, Metric>()
  const seen = new Set<string>()
  let current: { name: string; help: string; metric?: Metric } | undefined
  for (const line of text.slice(0, -1).split('\n')) {
    const [, help, helpText = ''] = new RegExp(`^# HELP (${metricName}) (.+)$`).exec(line) ?? []
    const [, typed, type] = new RegExp(`^# TYPE (${metricName}) (counter|gauge|histogram|summary)$`).exec(line) ?? []
    if (line === '') continue
    if (help !== undefined) {
      current = { name: help, help: helpText }
    } else if (typed !== undefined) {
      if (current?.name !== typed || metrics.has(typed)) throw new Error(`A type without help, or twice: ${line}`)
      current.metric = { type: type as Metric['type'], help: current.help, samples: [] }
      metrics.set(typed, current.metric)
    } else {
      if (current?.metric === undefined) throw new Error(`A sample of nothing: ${line}`)
      if (seen.has(line.slice(0, line.lastIndexOf(' ')))) throw new Error(`A sample twice: ${line}`)
      seen.add(line.slice(0, line.lastIndexOf(' ')))
      current.metric.samples.push(sampleOf(line, current.name, current.metric.type))
    }
  }
  for (const [name, metric] of metrics) if (metric.type === 'histogram') checkHistogram(name, metric)
  return metrics
}

function sampleOf(line: string, metric: string, type: Metric['type']): Sample {
  const [, name = '', labels = '', value = ''] = sampleLine.exec(line) ?? []
  if (!name.startsWith(metric) || !suffixes[type].test(name.slice(metric.length))) throw new Error(`No sample: ${line}`)
  const pairs = [...labels.matchAll(/([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"/g)]
  const number = value.endsWith('Inf') ? Number(`${value.replace('Inf', '')}Infinity`) : Number(value)
  if (type === 'counter' && !(number >= 0)) throw new Error(`A counter below zero: ${line}`)
  return { name, labels: Object.fromEntries(pairs.map(([, key, text]) => [key, text])), value: number }
}

/** Buckets are cumulative, and the last one equals the count. */
function checkHistogram(name: string, { samples }: Metric): void {
  const groups = Map.groupBy(samples, ({ labels }) => {
    const others = Object.entries(labels).filter(([key]) => key !== 'le')
    return JSON.stringify(others.toSorted(([a], [b]) => (a < b ? -1 : 1)))
  })
  for (const [labels, group] of groups) {
    const buckets = group.filter((sample) => sample.name === `${name}_bucket`)
    const count = group.find((sample) => sample.name === `${name}_count`)?.value
    const grows = buckets.every(({ value }, index) => value >= (buckets[index - 1]?.value ?? 0))
    const isWhole = buckets.at(-1)?.labels['le'] === '+Inf' && buckets.at(-1)?.value === count
    if (!grows || !isWhole) throw new Error(`The histogram ${name} of ${labels} is not in order.`)
  }
}

/** The value of the sample with these labels; 0 if there is none. */
export function valueOf(metrics: Map<string, Metric>, name: string, labels: Record<string, string> = {}): number {
  const metric = metrics.get(name) ?? metrics.get(name.replace(/_(bucket|sum|count)$/, ''))
  const wanted = Object.entries(labels)
  const found = (metric?.samples ?? []).filter(
    (sample) => sample.name === name && wanted.every(([key, value]) => sample.labels[key] === value),
  )
  return found.reduce((sum, { value }) => sum + value, 0)
}
