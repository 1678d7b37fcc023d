/** `npm run deployer-policy`: prints or writes the IAM permissions to deploy a stage, derived from its resources. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { CliError, messageOf } from '@platform/cli/exit'
import { exitOnHelp, resolveFromCaller } from '@platform/local/command-line'
import { stageNameError } from '../infra/stage-name.ts'
import { graphOf } from '../test/simulator/graph/graph.ts'
import { deployerPolicies } from './deployer/policy.ts'
import { readSettings } from './deploy/settings.ts'

const usage = `npm run deployer-policy -- --stage NAME [--output FOLDER]

  --stage NAME     name of the deployment
  --output FOLDER  write one file for each policy instead of printing a JSON array

Settings such as PLAT_DOMAIN are read from the environment, .env.NAME and .env, as in npm run deploy.`

function parseOptions(args: string[]): { stage: string; output: string | undefined } {
  const option = { type: 'string' } as const
  try {
    const { stage = '', output } = parseArgs({ args, options: { stage: option, output: option } }).values
    const error = stageNameError(stage)
    if (error !== undefined) throw new Error(`--stage: "${stage}" ${error}.`)
    return { stage, output: output && resolveFromCaller(output) }
  } catch (error) {
    throw new CliError('usage', `${messageOf(error)}\n\n${usage}`, error)
  }
}

async function main(): Promise<void> {
  const { stage, output } = parseOptions(process.argv.slice(2))
  await readSettings(stage)
  const policies = deployerPolicies(await graphOf(stage), stage)
  if (output === undefined) return console.log(JSON.stringify(policies, undefined, 2))
  await mkdir(output, { recursive: true })
  for (const [index, policy] of policies.entries()) {
    const file = join(output, `platform-${stage}-deployer-${index + 1}.json`)
    await writeFile(file, `${JSON.stringify(policy, undefined, 2)}\n`)
    console.log(file)
  }
}

exitOnHelp(usage)
try {
  await main()
} catch (error) {
  console.error(error instanceof CliError ? error.message : error)
  process.exitCode = error instanceof CliError ? error.exitCode : 1
}
