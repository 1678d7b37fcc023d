/** A strict parser of the Prometheus text format 0.0.4. */

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
const metricLines = new RegExp(
  String.raw`# HELP (${metricName}) (.+)\n# TYPE \1 (counter|gauge|histogram|summary)\n((?:[^#\n].*\n|\n)*)`,
  'gy',
)
const suffixes = { counter: /^$/, gauge: /^$/, histogram: /^(_bucket|_sum|_count)$/, summary: /^(|_sum|_count)$/ }

export function parseMetrics(text: string): Map<string, Metric> {
  const metrics = new Map<string, Metric>()
  const seriesNames = new Set<string>()
  let length = 0
  for (const [part, name = '', help = '', type, lines = ''] of text.matchAll(metricLines)) {
    if (metrics.has(name)) throw new Error(`Repeated metric: ${name}`)
    const metric: Metric = { type: type as Metric['type'], help, samples: [] }
    for (const line of lines.split('\n').filter(Boolean)) {
      const seriesName = line.slice(0, line.lastIndexOf(' '))
      if (seriesNames.has(seriesName)) throw new Error(`Repeated sample: ${line}`)
      seriesNames.add(seriesName)
      metric.samples.push(sampleOf(line, name, metric.type))
    }
    if (metric.type === 'histogram') checkHistogram(name, metric)
    metrics.set(name, metric)
    length += part.length
  }
  if (length < text.length) throw new Error(`Invalid line: ${text.slice(length).split('\n', 1)[0]}`)
  return metrics
}

function sampleOf(line: string, metric: string, type: Metric['type']): Sample {
  const [, name = '', labels = '', value = ''] = sampleLine.exec(line) ?? []
  if (!name.startsWith(metric) || !suffixes[type].test(name.slice(metric.length)))
    throw new Error(`Invalid sample: ${line}`)
  const pairs = [...labels.matchAll(/([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"/g)]
  const number = value.endsWith('Inf') ? Number(`${value.replace('Inf', '')}Infinity`) : Number(value)
  if (type === 'counter' && !(number >= 0)) throw new Error(`Negative counter: ${line}`)
  return { name, labels: Object.fromEntries(pairs.map(([, key, text]) => [key, text])), value: number }
}

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
    if (!grows || !isWhole) throw new Error(`The histogram ${name} with ${labels} is not cumulative.`)
  }
}

export function valueOf(metrics: Map<string, Metric>, name: string, labels: Record<string, string> = {}): number {
  const metric = metrics.get(name) ?? metrics.get(name.replace(/_(bucket|sum|count)$/, ''))
  const expected = Object.entries(labels)
  const samples = (metric?.samples ?? []).filter(
    (sample) => sample.name === name && expected.every(([key, value]) => sample.labels[key] === value),
  )
  return samples.reduce((sum, { value }) => sum + value, 0)
}
