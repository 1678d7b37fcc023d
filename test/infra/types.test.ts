import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '../..')
const tsc = join(root, 'node_modules/.bin/tsc')

/** What the compiler says of a project; nothing where all is well. */
async function said(project: string): Promise<string> {
  try {
    await promisify(execFile)(tsc, ['-p', project, '--pretty', 'false'], { cwd: root })
    return ''
  } catch (error) {
    return String((error as { stdout?: string }).stdout)
  }
}

test('the deployment fits the types of its components, and what does not fit them does not compile: a duration, a component, a property, a metric, a capability', async () => {
  const folder = await mkdtemp(join(root, '.sst/types-'))
  try {
    const source = `
import { grantsOf } from '../../infra/grants.ts'
import { platformMetric } from '../../infra/metrics.ts'
new sst.aws.Queue('Right', { visibilityTimeout: '30 seconds' })
new sst.aws.Queue('Duration', { visibilityTimeout: '30 secs' })
new sst.aws.Tabel('Component', {})
new aws.cloudwatch.MetricAlarm('Property', { comparisonOperator: 'LessThanThreshold', evaluationPeriods: 'one' })
platformMetric('SweepLatness', 'schedule/sweep')
grantsOf(['queue:everything'])
`
    await writeFile(join(folder, 'wrong.ts'), source)
    const settings = {
      extends: '../../infra/tsconfig.json',
      include: ['wrong.ts', '../../infra/**/*.ts', '../../sst.config.ts'],
    }
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(settings))
    const lines = (await said(folder)).split('\n').filter((line) => line.includes('error TS'))
    // A line of another file has no number.
    expect(lines.map((line) => Number(/wrong\.ts\((\d+),/.exec(line)?.[1]))).toEqual([5, 6, 7, 8, 9])
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})
