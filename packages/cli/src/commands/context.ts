import type { Command } from 'commander'
import { parseContextName } from '../context.ts'
import { CliError } from '../exit.ts'
import { confirm } from '../print/ask.ts'
import { type PrintOptions, showList, showOne } from '../print/show.ts'
import { say, write, writeJson } from '../print/write.ts'
import { existingContext, serverOf } from '../session/credentials.ts'
import { withLock } from '../session/lock.ts'
import {
  contextNames,
  currentContextName,
  readContext,
  removeContext,
  selectedContextName,
  setCurrentContextName,
  writeContext,
} from '../session/store.ts'
import { addCommand, addTableCommand } from './add-command.ts'
import { endSession } from './session.ts'

export function addContextCommands(program: Command): void {
  const context = program.command('context').description('servers and their signed-in users')
  addCommand(context, 'add <name>', 'add a context for a server', [
    'plat context add production --server https://platform.example.com',
    'plat login --context production --username ada',
  ])
    .requiredOption('--server <url>', 'platform address')
    .action(add)
  addCommand(context, 'use <name>', 'use a context in the following commands').action(use)
  addTableCommand(context, 'list', 'list contexts').option('--names', 'print only the names').action(list)
  addCommand(context, 'show [name]', 'show a context (default: the one in use)').action(
    async (name: string | undefined, options: PrintOptions) => {
      const chosenName = name === undefined ? selectedContextName() : parseContextName(name)
      existingContext(chosenName)
      await showOne(options, rowOf(chosenName))
    },
  )
  addCommand(context, 'remove <name>', 'sign out of a context and remove it')
    .option('--yes', 'skip the confirmation')
    .action(remove)
}

async function add(text: string, { server: address, ...options }: PrintOptions & { server: string }): Promise<void> {
  const name = parseContextName(text)
  const server = serverOf(address)
  await withLock(name, async () => {
    const before = readContext(name)
    if (before !== undefined && before.server !== server)
      throw new CliError('usage', `The context ${name} belongs to ${before.server}. Choose another name, or remove it.`)
    writeContext(name, before ?? { server })
  })
  if (readContext(currentContextName()) === undefined) setCurrentContextName(name)
  if (options.json) return writeJson(rowOf(name))
  say(`Context ${name} added. Next: plat login --context ${name}`)
}

async function use(text: string, options: PrintOptions): Promise<void> {
  const name = parseContextName(text)
  existingContext(name)
  setCurrentContextName(name)
  if (options.json) return writeJson(rowOf(name))
  say(`The current context is ${name}.`)
}

/** Returns the printed fields of a context, without its tokens. */
function rowOf(name: string) {
  const { server, username, session } = readContext(name) ?? {}
  const status = session === undefined ? 'Signed out' : 'Signed in'
  return { name, current: name === currentContextName(), server, username, status }
}

async function list({ names, ...options }: PrintOptions & { names?: true }): Promise<void> {
  if (names)
    return write(
      contextNames()
        .map((name) => `${name}\n`)
        .join(''),
    )
  await showList(options, { items: contextNames().map(rowOf) }, [
    { title: 'CURRENT', cellValue: ({ current }) => (current ? '*' : '') },
    { title: 'NAME', cellValue: ({ name }) => name, isFlexible: 'middle' },
    { title: 'SERVER', cellValue: ({ server }) => server, isFlexible: 'middle' },
    { title: 'USER', cellValue: ({ username }) => username, isFlexible: 'middle' },
    { title: 'STATUS', cellValue: ({ status }) => status, format: 'state' },
  ])
}

async function remove(text: string, { json, yes }: PrintOptions & { yes?: true }): Promise<void> {
  const name = parseContextName(text)
  const { server, session } = existingContext(name)
  await confirm(`Remove the context ${name} (${server})?`, { ...(yes && { yes }) })
  if (session !== undefined) await endSession(name, session)
  const wasCurrent = currentContextName() === name
  await withLock(name, async () => removeContext(name))
  const contextNote = wasCurrent ? ` The current context is ${currentContextName()}.` : ''
  await (json ? writeJson({ name, deleted: true }) : say(`${name} removed.${contextNote}`))
}
