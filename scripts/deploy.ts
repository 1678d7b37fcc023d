/** `npm run deploy` and `npm run deploy:remove`: checks what it needs, builds the functions, and lets SST do the rest. */
import { setGlobalProxyFromEnv } from 'node:http'
import { CliError } from '@platform/cli/exit'
import { type Account, findAccount } from './deploy/account.ts'
import { buildFunctions, functionsDir } from './deploy/build.ts'
import { deploySummary, failureSummary, removeSummary } from './deploy/farewell.ts'
import { writeDeploymentDigest } from './deploy/mark.ts'
import { type Options, parseOptions } from './deploy/options.ts'
import { readSettings, requireCertificateIn, type Settings } from './deploy/settings.ts'
import { readOutputs, runSst } from './deploy/sst.ts'

const say = (line: string): void => console.log(line)
const seconds = (): string => `${(performance.now() / 1000).toFixed(1)} s`
const doing = { deploy: 'Deploying', diff: 'Comparing', remove: 'Removing' } as const

async function run(options: Options): Promise<void> {
  const { action, stage } = options
  const { set, ignored } = await readSettings(stage)
  for (const name of ignored) console.warn(`${name} is no setting of a deployment: it has no effect here.`)
  const account = await findAccount()
  requireCertificateIn(account.region, set)
  say(`${doing[action]} the stage ${stage}: account ${account.id}, region ${account.region}, as ${account.arn}.`)
  // What goes is known from the state of its deployment.
  if (action !== 'remove') await build(stage, set)
  if ((await runSst(options, account.region)) !== 0) throw new CliError('refused', failureSummary(options))
  await sayFarewell(options, account)
}

async function build(stage: string, set: Settings['set']): Promise<void> {
  const count = await buildFunctions()
  await writeDeploymentDigest(functionsDir, stage, set)
  say(`${count} functions are built after ${seconds()}.`)
}

async function sayFarewell({ action, stage }: Options, account: Account): Promise<void> {
  if (action === 'deploy') say(deploySummary(stage, account, await readOutputs()))
  if (action === 'remove') say(removeSummary(stage))
}

try {
  setGlobalProxyFromEnv()
  const options = parseOptions(process.argv.slice(2))
  if (typeof options === 'string') say(options)
  else await run(options)
} catch (error) {
  const isUsage = error instanceof CliError && error.exitCode === 2
  console.error(error instanceof CliError ? error.message : error)
  if (isUsage) console.error('Nothing has been deployed or changed.')
  process.exitCode = error instanceof CliError ? error.exitCode : 1
}
