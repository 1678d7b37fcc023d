import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { functionNames } from '@platform/core/updates/function-names'
import * as z from 'zod'
import { type Graph, ofType } from '../simulator/graph/graph.ts'
import { deployment } from '../support/components.ts'

export interface ShownMetric {
  namespace: string
  metricName: string
  dimensions: Record<string, string>
}

const Line = z.object({
  _aws: z.object({
    CloudWatchMetrics: z.tuple([
      z.object({
        Namespace: z.string(),
        Dimensions: z.array(z.array(z.string())),
        Metrics: z.array(z.object({ Name: z.string() })),
      }),
    ]),
  }),
  Function: z.string(),
})

const program = `
import { withMetrics, recordMetric, metricUnits } from '${join(import.meta.dirname, '../../packages/core/src/lib/metrics.ts')}'
await withMetrics(async () => Object.keys(metricUnits).forEach((name) => recordMetric(name)))`

export async function writtenMetrics(functionName: string) {
  const env = { ...process.env, PLAT_METRICS: 'emf', AWS_LAMBDA_FUNCTION_NAME: functionName, NODE_NO_WARNINGS: '1' }
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], { env })
  const { _aws, Function } = Line.parse(JSON.parse(stdout))
  const [{ Namespace, Dimensions, Metrics }] = _aws.CloudWatchMetrics
  return { namespace: Namespace, dimensions: Dimensions, names: Metrics.map(({ Name }) => Name), value: Function }
}

/** Returns function → built code, which contains the name of a metric only if the function records the metric. */
export const programs = async (): Promise<Map<string, string>> =>
  new Map(await Promise.all(functionNames.map(async (name) => [name, await programOf(name)] as const)))

async function programOf(name: string): Promise<string> {
  const folder = join((await deployment()).functionsDir, name)
  const files = (await readdir(folder)).filter((file) => file.endsWith('.mjs'))
  return (await Promise.all(files.map((file) => readFile(join(folder, file), 'utf8')))).join('\n')
}

const Single = z.object({ namespace: z.string(), metricName: z.string(), dimensions: z.record(z.string(), z.string()) })
const Several = z.object({ metricQueries: z.array(z.object({ metric: Single.optional() })) })

export const alarmMetrics = (graph: Graph): Map<string, ShownMetric[]> =>
  new Map(
    ofType(graph, 'aws:cloudwatch/metricAlarm:MetricAlarm').map(({ inputs }) => {
      const single = Single.safeParse(inputs)
      const metrics = single.success
        ? [single.data]
        : Several.parse(inputs).metricQueries.flatMap(({ metric }) => (metric ? [metric] : []))
      return [String(inputs['name']), metrics]
    }),
  )
