import type { Command } from 'commander'
import { expectNoBody, unwrap } from '../api/unwrap.ts'
import type { Schemas } from '../api/client.ts'
import { connect } from '../connect.ts'
import { exitCodes } from '../exit.ts'
import { confirm } from '../print/ask.ts'
import { type PrintOptions, showList } from '../print/show.ts'
import { cellOf, type Column } from '../print/table.ts'
import { say, write, writeJson } from '../print/write.ts'
import { addProviderCommands } from './idp-add.ts'
import { addCommand, addTableCommand } from './add-command.ts'

type Provider = Schemas['IdentityProvider']

const path = '/api/v1/platform/identity/providers'

const columns: Column<Provider>[] = [
  { title: 'ID', cellValue: ({ id }) => id },
  { title: 'TYPE', cellValue: ({ type }) => type, isFlexible: true },
  { title: 'NAME', cellValue: ({ displayName }) => displayName, isFlexible: true },
  { title: 'STATUS', cellValue: ({ status }) => status, format: 'state' },
  {
    title: 'ADDRESS',
    cellValue: ({ issuer, baseUrl, tenantId, url }) => url ?? baseUrl ?? issuer ?? tenantId,
    isFlexible: true,
  },
  {
    title: 'LAST FAILURE',
    cellValue: ({ lastFailure }) => lastFailure && `${lastFailure.at} ${lastFailure.problem}: ${lastFailure.detail}`,
    isFlexible: true,
  },
]

export function addIdentityCommands(program: Command): void {
  const idp = program.command('idp').description('identity providers for sign-in')
  addTableCommand(idp, 'list', 'list identity providers', { listProviders: 'plat idp list' }).action(
    async (options: PrintOptions) => showList(options, await unwrap(connect().GET(path)), columns),
  )
  addProviderCommands(idp.command('add').description('add an identity provider, or update the one at the same address'))
  addCommand(idp, 'test <id>', 'test the connection to a provider', {
    testProvider: 'plat idp test idp_01jd8w5k3zr9x2m4c7t6v0b1qa',
  }).action(test)
  addCommand(idp, 'consent <id>', "request consent from the tenant's administrator; prints the URL to open", {
    requestConsent: 'plat idp consent idp_01jd8w5k3zr9x2m4c7t6v0b1qa',
  }).action(async (id: string, { json }: PrintOptions) => {
    const { url } = await unwrap(connect().POST(`${path}/{id}/consent`, { params: { path: { id } } }))
    await (json ? writeJson({ url }) : write(`${url}\n`))
  })
  addCommand(idp, 'remove <id>', 'remove a provider; its users can no longer sign in', {
    deleteProvider: 'plat idp remove idp_01jd8w5k3zr9x2m4c7t6v0b1qa',
  })
    .option('--yes', 'skip the confirmation')
    .action(remove)
}

async function test(id: string, { json }: PrintOptions): Promise<void> {
  const providerTest = await unwrap(connect().POST(`${path}/{id}/test`, { params: { path: { id } } }))
  if (!providerTest.ok) process.exitCode = exitCodes.refused
  if (json) return writeJson(providerTest)
  const lines = providerTest.checks.map(
    ({ name, ok, message }) => `${ok ? 'ok    ' : 'FAILED'} ${cellOf(name)}: ${cellOf(message)}\n`,
  )
  await write(lines.join(''))
}

async function remove(id: string, { json, yes }: PrintOptions & { yes?: true }): Promise<void> {
  await confirm(`Remove ${cellOf(id)}? Its users can no longer sign in.`, { ...(yes && { yes }) })
  await expectNoBody(connect().DELETE(`${path}/{id}`, { params: { path: { id } } }))
  await (json ? writeJson({ id, deleted: true }) : say(`${cellOf(id)} removed.`))
}
