import type { Command } from 'commander'
import type { Schemas } from '../api/client.ts'
import { unwrap } from '../api/unwrap.ts'
import { type Extent, type Paging, readList } from '../api/pages.ts'
import { connect } from '../connect.ts'
import { type PrintOptions, showList, showOne } from '../print/show.ts'
import { addCommand, addListCommand, wholeNumber } from './add-command.ts'

export function addOrganisationCommands(program: Command): void {
  const organisation = program.command('organisation').description('tenants of the platform')
  addListCommand(organisation, 'list', 'list organisations', { listOrganisations: 'plat organisation list' }).action(
    async ({ limit, all, ...options }: PrintOptions & Extent) => {
      const api = connect()
      const read = (query: Paging) => unwrap(api.GET('/api/v1/platform/organisations', { params: { query } }))
      await showList(options, await readList({ limit, ...(all && { all }) }, read), [
        { title: 'ID', cellValue: ({ id }) => id },
        { title: 'NAME', cellValue: ({ name }) => name, isFlexible: true },
        { title: 'PLATFORM', cellValue: ({ isPlatform }) => (isPlatform ? 'yes' : 'no') },
        { title: 'CREATED', cellValue: ({ createdAt }) => createdAt, format: 'age' },
      ])
    },
  )
  addCommand(organisation, 'settings', 'show or change the settings of your organisation', {
    getOrganisationSettings: 'plat organisation settings',
    updateOrganisationSettings: [
      'plat organisation settings --job-retention-days 90',
      'plat organisation settings --max-token-lifetime-days none',
    ],
  })
    .option('--max-token-lifetime-days <days>', 'longest lifetime of new API tokens, or none', parseDays)
    .option('--default-token-lifetime-days <days>', 'lifetime of API tokens without --expires-at, or none', parseDays)
    .option('--job-retention-days <days>', 'days after which ended jobs are removed', wholeNumber(1, 3650))
    .action(showOrChangeSettings)
  addCommand(organisation, 'usage', 'show how much of its quotas your organisation uses', {
    getOrganisationUsage: 'plat organisation usage',
  }).action(showUsage)
  addCommand(organisation, 'quota <id>', 'change the quotas of an organisation, or give it the defaults again', {
    updateOrganisation: [
      'plat organisation quota org_01jd8w5k3zr9x2m4c7t6v0b1qa --clusters 500',
      'plat organisation quota org_01… --clusters default --active-jobs 2000',
    ],
  })
    .option('--clusters <number>', 'maximum number of clusters, or default', parseQuota)
    .option('--users <number>', 'maximum number of users, or default', parseQuota)
    .option('--webhooks <number>', 'maximum number of webhooks, or default', parseQuota)
    .option('--active-jobs <number>', 'maximum number of queued and running jobs, or default', parseQuota)
    .action(async (id: string, { clusters, users, webhooks, activeJobs, ...options }: PrintOptions & Quotas) => {
      const body = { quotas: givenValues({ clusters, users, webhooks, activeJobs }) }
      const path = '/api/v1/platform/organisations/{id}'
      await showOne(options, await unwrap(connect().PATCH(path, { params: { path: { id } }, body })))
    })
  addCommand(organisation, 'create <name>', 'create an organisation; add its first OrgAdmin with plat user create', {
    createOrganisation: [
      'plat organisation create Acme',
      'plat user create ann --organisation org_01… --role OrgAdmin --email ann@acme.example',
    ],
  }).action(async (name: string, options: PrintOptions) =>
    showOne(options, await unwrap(connect().POST('/api/v1/platform/organisations', { body: { name } }))),
  )
}

const parseDays = (text: string) => (text === 'none' ? text : wholeNumber(1, 3650)(text))

const parseQuota = (text: string) => (text === 'default' ? text : wholeNumber(0, 10_000_000)(text))

/**
 * Omits undefined values and converts the words `none` and `default` to null, which commander does not accept as a
 * value.
 */
const givenValues = (values: Record<string, number | string | undefined>): Record<string, number | null> =>
  Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, typeof value === 'string' ? null : value]],
    ),
  )

type Quotas = { [Name in keyof Schemas['OrganisationQuotas']]?: number | string }

async function showUsage(options: PrintOptions): Promise<void> {
  const quotas = await unwrap(connect().GET('/api/v1/organisation/usage'))
  const items = Object.entries(quotas).map(([resource, { used, limit }]) => ({ resource, used, limit }))
  if (options.json) return showOne(options, quotas)
  await showList(options, { items }, [
    { title: 'RESOURCE', cellValue: ({ resource }) => resource },
    { title: 'USED', cellValue: ({ used }) => String(used) },
    { title: 'LIMIT', cellValue: ({ limit }) => String(limit) },
  ])
}

interface SettingsOptions extends PrintOptions {
  maxTokenLifetimeDays?: number | string
  defaultTokenLifetimeDays?: number | string
  jobRetentionDays?: number
}

async function showOrChangeSettings({
  maxTokenLifetimeDays,
  defaultTokenLifetimeDays,
  jobRetentionDays,
  ...options
}: SettingsOptions): Promise<void> {
  const body = {
    ...givenValues({ maxTokenLifetimeDays, defaultTokenLifetimeDays }),
    ...(jobRetentionDays !== undefined && { jobRetentionDays }),
  }
  const path = '/api/v1/organisation/settings'
  const isChange = Object.keys(body).length > 0
  await showOne(options, await unwrap(isChange ? connect().PATCH(path, { body }) : connect().GET(path)))
}
