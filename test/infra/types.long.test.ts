import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { deployment } from '../support/components.ts'

const root = join(import.meta.dirname, '../..')
const compiler = join(root, 'node_modules/typescript-native/bin/tsc')

async function compile(project: string): Promise<string> {
  try {
    await promisify(execFile)(process.execPath, [compiler, '-p', project, '--pretty', 'false'], { cwd: root })
    return ''
  } catch (error) {
    return String((error as { stdout?: string }).stdout)
  }
}

test('the deployment compiles, and invalid durations, components, properties, metrics and capabilities do not', async () => {
  // The components are installed while tests already run.
  await deployment()
  const folder = await mkdtemp(join(root, '.sst/types-'))
  try {
    const source = `
import { grantsOf } from '../../infra/grants.ts'
import { platformMetric } from '../../infra/metrics.ts'
new sst.aws.Queue('Valid', { visibilityTimeout: '30 seconds' })
new sst.aws.Queue('Duration', { visibilityTimeout: '30 secs' })
new sst.aws.Tabel('Component', {})
new aws.cloudwatch.MetricAlarm('Property', { comparisonOperator: 'LessThanThreshold', evaluationPeriods: 'one' })
platformMetric('SweepLatness', 'schedule/sweep')
grantsOf(['queue:everything'])
`
    await writeFile(join(folder, 'invalid.ts'), source)
    const settings = {
      extends: '../../infra/tsconfig.json',
      include: ['invalid.ts', '../../infra/**/*.ts', '../../sst.config.ts'],
    }
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(settings))
    const errors = (await compile(folder)).split('\n').filter((line) => line.includes('error TS'))
    // An error in another file gives NaN, which fails the test.
    expect(errors.map((line) => Number(/invalid\.ts\((\d+),/.exec(line)?.[1]))).toEqual([5, 6, 7, 8, 9])
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})
