import { spawn } from 'node:child_process'
import { Argument, type Command } from 'commander'
import { findCluster, siteIdOf } from '../clusters.ts'
import type { Api } from '../api/client.ts'
import { connect } from '../connect.ts'
import { CliError } from '../exit.ts'
import type { PrintOptions } from '../print/show.ts'
import { cellOf } from '../print/table.ts'
import { say, write, writeJson } from '../print/write.ts'
import { selectedServer } from '../session/credentials.ts'
import { addCommand } from './add-command.ts'

interface Kind {
  list: string
  /** Returns the path of the page of one resource. Absent if resources have no page of their own. */
  pathOf?: (id: string) => string
  prefix?: string
  /** Finds the id of a resource by its name. Absent if resources have no names. */
  idOf?: (api: Api, nameOrId: string) => Promise<string>
  /** The command that lists the resources, if its name is not that of the kind. */
  command?: string
}

const kinds: Record<string, Kind> = {
  dashboard: { list: '/dashboard' },
  cluster: {
    list: '/clusters',
    pathOf: (id) => `/clusters/${id}`,
    prefix: 'clus',
    idOf: async (api, name) => (await findCluster(api, name)).id,
  },
  site: {
    list: '/clusters?sort=site',
    pathOf: (id) => `/clusters?selector=${encodeURIComponent(`platform/site=${id}`)}`,
    prefix: 'site',
    idOf: siteIdOf,
  },
  'enrollment-key': { list: '/clusters/enrollment-keys' },
  'relay-update': {
    list: '/clusters/relay-updates',
    pathOf: (id) => `/clusters/relay-updates?update=${id}`,
    prefix: 'rupd',
    command: 'relay update',
  },
  node: { list: '/nodes' },
  job: { list: '/jobs', pathOf: (id) => `/jobs/${id}`, prefix: 'job' },
  batch: { list: '/jobs?tab=batches', pathOf: (id) => `/jobs/batches/${id}`, prefix: 'batch' },
  module: { list: '/modules', pathOf: (id) => `/modules?module=${encodeURIComponent(id)}` },
  notification: { list: '/notifications' },
  token: { list: '/settings/account?tab=tokens' },
  user: { list: '/settings/users' },
  webhook: { list: '/settings/webhooks' },
  audit: { list: '/settings/audit' },
  idp: { list: '/settings/identity' },
  organisation: { list: '/settings/organisations' },
  update: { list: '/settings/updates' },
}

export function addOpenCommand(program: Command): void {
  addCommand(program, 'open', 'open the portal in a browser, at a page or resource', [
    'plat open',
    'plat open cluster berlin-1',
    'plat open job job_01…',
    'plat open batch batch_01… --print',
    'plat open site Berlin',
  ])
    .addArgument(new Argument('[kind]', 'kind of page').choices(Object.keys(kinds)).default('dashboard'))
    .argument('[name|id]', 'the resource; only clusters and sites have names')
    .option('--print', 'print the address and open no browser')
    .action(open)
}

async function open(
  kind: string,
  nameOrId: string | undefined,
  options: PrintOptions & { print?: true },
): Promise<void> {
  // The host is that of the selected server. Names and responses of the platform determine only the path.
  const url = selectedServer() + (await pathOf(kind, nameOrId))
  if (options.json) return writeJson({ url })
  if (options.print) return write(`${url}\n`)
  if (await openBrowser(url)) say(`${url} is open in the browser.`)
  else await write(`${url}\n`)
}

async function pathOf(name: string, nameOrId: string | undefined): Promise<string> {
  const { list, pathOf, prefix, idOf, command = name }: Kind = kinds[name] ?? { list: '/' }
  if (nameOrId === undefined) return list
  if (pathOf === undefined)
    throw new CliError('usage', `The portal has no page for one ${name}. Run: plat open ${name}`)
  if (prefix === undefined || new RegExp(`^${prefix}_[0-9a-hjkmnp-tv-z]{26}$`).test(nameOrId)) return pathOf(nameOrId)
  if (idOf !== undefined) return pathOf(await idOf(connect(), nameOrId))
  throw new CliError('usage', `${cellOf(nameOrId)} is not the id of a ${command}. See: plat ${command} list`)
}

// Each program receives the address as an argument; there is no shell that could interpret it.
const browsers: Partial<Record<NodeJS.Platform, [program: string, ...args: string[]]>> = {
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
}

/**
 * Opens a URL in a browser. Returns false if there is no display, or if the program that opens it cannot be started or
 * fails.
 */
function openBrowser(url: string): Promise<boolean> {
  const { DISPLAY: x11, WAYLAND_DISPLAY: wayland, WSL_DISTRO_NAME: windows } = process.env
  const [program, ...args] = browsers[process.platform] ?? ['xdg-open']
  if (program === 'xdg-open' && !x11 && !wayland && !windows) return Promise.resolve(false)
  return new Promise((resolve) => {
    const child = spawn(program, [...args, url], { stdio: 'ignore', detached: true, shell: false })
    // Some programs exit after they open the page; others are the browser and run until the user closes it.
    const timer = setTimeout(() => resolve(true), browserStartMs)
    const finish = (isOpen: boolean): void => {
      clearTimeout(timer)
      resolve(isOpen)
    }
    child.on('error', () => finish(false))
    child.on('exit', (code) => finish(code === 0))
    child.unref()
  })
}

const browserStartMs = 3000
