import { parseArgs, type ParseArgsConfig } from 'node:util'
import { CliError, messageOf } from '@platform/cli/exit'
import * as z from 'zod'
import { stageNameError, maxStageLength } from '../../infra/stage-name.ts'

export interface Options {
  action: 'deploy' | 'diff' | 'remove'
  stage: string
}

const usages = {
  deploy: `npm run deploy -- --stage NAME [--diff]

  --stage NAME   name of the deployment: at most ${maxStageLength} lower-case letters and digits
  --diff         show the changes without making them
  --help         show this help

npm run deploy:remove -- --stage NAME --confirm NAME removes a stage. Settings and credentials: docs/deployment.md.
Exit codes: 0 deployed; 1 failed, run the command again; 2 invalid settings or options, nothing was changed.`,
  remove: `npm run deploy:remove -- --stage NAME --confirm NAME

  --stage NAME   the deployment to remove, with all its data
  --confirm NAME the same name again
  --help         show this help

Exit codes: 0 removed; 1 failed, run the command again; 2 invalid settings or options, nothing was changed.`,
} as const

/** Parses the command line. Returns the help text if it is requested. Throws `CliError` for invalid options. */
export function parseOptions(args: readonly string[]): Options | string {
  const command = args[0] === 'remove' ? 'remove' : 'deploy'
  const { help, stage, diff, confirm } = valuesOf(command === 'remove' ? args.slice(1) : args, command)
  if (help) return usages[command]
  if (stage === undefined) {
    throw new CliError('usage', `--stage is missing. Name the stage to deploy.\n\n${usages[command]}`)
  }
  const error = stageNameError(stage)
  if (error !== undefined) throw new CliError('usage', `--stage: "${stage}" ${error}.`)
  if (command === 'deploy') return { action: diff ? 'diff' : 'deploy', stage }
  if (confirm !== stage) throw confirmationError(stage, confirm)
  return { action: 'remove', stage }
}

const text = { type: 'string' } as const
const flag = { type: 'boolean' } as const

const optionsOf = {
  deploy: { help: flag, stage: text, diff: flag },
  remove: { help: flag, stage: text, confirm: text },
} as const

const Values = z.object({
  help: z.boolean().optional(),
  stage: z.string().optional(),
  diff: z.boolean().optional(),
  confirm: z.string().optional(),
})

function valuesOf(args: readonly string[], command: keyof typeof optionsOf): z.infer<typeof Values> {
  try {
    const options: ParseArgsConfig['options'] = optionsOf[command]
    return Values.parse(parseArgs({ args: [...args], options, strict: true }).values)
  } catch (error) {
    throw new CliError('usage', `${messageOf(error)}\n\n${usages[command]}`, error)
  }
}

function confirmationError(stage: string, confirm: string | undefined): CliError {
  const consequence = `This permanently removes the stage ${stage} with its data and signing keys.`
  const mismatch = confirm === undefined ? '' : `--confirm is "${confirm}", but --stage is "${stage}".\n`
  return new CliError(
    'usage',
    `${mismatch}${consequence}\nTo confirm, run: npm run deploy:remove -- --stage ${stage} --confirm ${stage}`,
  )
}
