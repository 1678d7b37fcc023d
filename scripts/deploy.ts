/** `npm run deploy` and `npm run deploy:remove`: checks prerequisites, builds the functions and runs SST. */
import { setGlobalProxyFromEnv } from 'node:http'
import { CliError } from '@platform/cli/exit'
import { type Account, findAccount } from './deploy/account.ts'
import { findCapacity } from './deploy/capacity.ts'
import { buildFunctions, functionsDir } from './deploy/build.ts'
import { deploySummary, failureSummary, removeSummary } from './deploy/summary.ts'
import { writeDeploymentDigest } from './deploy/digest.ts'
import { type Options, parseOptions } from './deploy/options.ts'
import { readSettings, rejectRemovalOfProtected, requireCertificateIn, type Settings } from './deploy/settings.ts'
import { readOutputs, runSst } from './deploy/sst.ts'

const print = (line: string): void => console.log(line)
const duration = (): string => `${(performance.now() / 1000).toFixed(1)} s`
const progressOf = { deploy: 'Deploying', diff: 'Comparing', remove: 'Removing' } as const

async function run(options: Options): Promise<void> {
  const { action, stage } = options
  const { values, ignored } = await readSettings(stage)
  for (const name of ignored) console.warn(`${name} is not a setting of the deployment and has no effect.`)
  if (action === 'remove') rejectRemovalOfProtected(stage)
  const account = await findAccount()
  requireCertificateIn(account.region, values)
  print(`${progressOf[action]} the stage ${stage}: account ${account.id}, region ${account.region}, as ${account.arn}.`)
  // A removal uses the state of the deployment, not the code.
  if (action !== 'remove') {
    await useCapacity(options, account.region)
    await build(stage, values)
  }
  if ((await runSst(options, account.region)) !== 0) throw new CliError('refused', failureSummary(options))
  await printSummary(options, account)
}

/** Passes the limits of the account to the configuration; settings take precedence. */
async function useCapacity({ action, stage }: Options, region: string): Promise<void> {
  if (process.env['PLAT_CONCURRENCY'] && process.env['PLAT_THROTTLE_PER_SECOND']) return
  try {
    const { concurrency, requestsPerSecond, warnings } = await findCapacity(region, stage)
    process.env['PLAT_CONCURRENCY'] ||= String(concurrency)
    process.env['PLAT_THROTTLE_PER_SECOND'] ||= String(requestsPerSecond)
    for (const warning of warnings) console.warn(warning)
  } catch (error) {
    // A comparison changes nothing.
    if (action !== 'diff' || !(error instanceof CliError)) throw error
    console.warn(
      `${error.message}\nThe comparison assumes no reserved concurrency if PLAT_CONCURRENCY is not set, and 5,000 requests per second if PLAT_THROTTLE_PER_SECOND is not set.`,
    )
  }
}

async function build(stage: string, values: Settings['values']): Promise<void> {
  const count = await buildFunctions()
  await writeDeploymentDigest(functionsDir, stage, values)
  print(`Built ${count} functions after ${duration()}.`)
}

async function printSummary({ action, stage }: Options, account: Account): Promise<void> {
  if (action === 'deploy') print(deploySummary(stage, account, await readOutputs()))
  if (action === 'remove') print(removeSummary(stage))
}

try {
  setGlobalProxyFromEnv()
  const options = parseOptions(process.argv.slice(2))
  if (typeof options === 'string') print(options)
  else await run(options)
} catch (error) {
  const isUsage = error instanceof CliError && error.exitCode === 2
  console.error(error instanceof CliError ? error.message : error)
  if (isUsage) console.error('Nothing was deployed or changed.')
  process.exitCode = error instanceof CliError ? error.exitCode : 1
}
