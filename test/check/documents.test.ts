import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { expect, test } from 'vitest'
import { apiTokenLimit } from '@platform/contract/api-token'
import { batchLimit } from '@platform/contract/batch'
import { type Capability, capabilitiesOf } from '@platform/contract/endpoint'
import { enrollmentKeyLimit } from '@platform/contract/enrollment-key'
import { routes } from '@platform/contract/index'
import { modulePaths } from '@platform/contract/passage'
import { savedFilterLimit } from '@platform/contract/preference'
import { siteLimit } from '@platform/contract/site'
import { tasks, type Task } from '@platform/contract/task'
import { webhookLimit } from '@platform/contract/webhook'
import { functionNames } from '@platform/core/updates/function-names'
import { root, sources } from '../../scripts/source.ts'
import { partNames } from '../verification/parts.ts'

const pages = sources().filter(({ path }) => path.endsWith('.md'))
const read = (path: string): string => readFileSync(join(root, path), 'utf8')

const matches = (pattern: RegExp): { path: string; groups: string[] }[] =>
  pages.flatMap(({ path, text }) => [...text.matchAll(pattern)].map(([, ...groups]) => ({ path, groups })))

const anchorsOf = (text: string): string[] =>
  [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .trim()
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  )

test('every link to a file or heading has a target', () => {
  const links = pages.flatMap(({ path, text }) => {
    const prose = text.replaceAll(/^ *```.*?^ *```/gms, '').replaceAll(/`[^`\n]*`/g, '')
    return [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, address = '']) => ({ path, address }))
  })
  const brokenLinks = links.filter(({ path, address }) => {
    if (/^\w+:/.test(address)) return false
    const [file = '', anchor] = address.split('#')
    const target = file === '' ? path : normalize(join(dirname(path), decodeURI(file)))
    if (!existsSync(join(root, target))) return true
    return anchor !== undefined && target.endsWith('.md') && !anchorsOf(read(target)).includes(anchor)
  })
  expect(brokenLinks).toEqual([])
})

test('every test file and npm command that a page names exists', () => {
  const files = matches(/`(test\/[\w/.-]+\.test\.tsx?)`/g).map(({ groups: [file = ''] }) => file)
  expect(files.length).toBeGreaterThan(100)
  expect(files.filter((file) => !existsSync(join(root, file)))).toEqual([])
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
  // Commands of workspaces are excluded.
  const commands = matches(/npm run (?:-s )?([\w:-]+)(?! -w)\b(?!.* -w @platform)/g)
  expect(commands.filter(({ groups: [name = ''] }) => scripts[name] === undefined)).toEqual([])
})

test('the systemd unit starts the platform with the command line and environment of npm start', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: { start: string } }
  const unit = read('docs/operations.md')
  const values = [...scripts.start.matchAll(/(\w+)="\$\{\1:-([^}]+)\}"/g)].map(([, name, value]) => `${name}=${value}`)
  expect(values.length).toBe(2)
  for (const value of values) expect(unit).toContain(`\nEnvironment=${value.replace('$PWD', '/opt/platform')}\n`)
  const command = scripts.start.slice(scripts.start.indexOf('node --'))
  expect(unit).toContain(`\nExecStart=/opt/platform/node_modules/.bin/${command}\n`)
})

test('docs/verification.md lists every part of npm run verify', () => {
  const rows = [...read('docs/verification.md').matchAll(/^\| `([\w-]+)` \|/gm)].map(([, name = '']) => name)
  expect(rows.toSorted()).toEqual(partNames.toSorted())
})

test('docs/functions.md lists every function with its capabilities', () => {
  const capabilitiesFor = (name: string): Capability[] => {
    const routeCapabilities = routes
      .filter((route) => route.function === name)
      .flatMap(({ endpoint }) => capabilitiesOf(endpoint))
    const others: Record<string, Pick<Task, 'capabilities'>> = { ...tasks, [modulePaths.function]: modulePaths }
    return [...new Set([...routeCapabilities, ...(others[name]?.capabilities ?? [])])]
  }
  const rows = [...read('docs/functions.md').matchAll(/^\| `([^`]+)` \| .+ \| (.*) \|$/gm)]
  const listedCapabilities = rows.map(
    ([, name = '', capabilities = '']) => [name, capabilities.split(/[;,]/).length] as const,
  )
  const declaredCapabilities = functionNames.map((name) => [name, Math.max(1, capabilitiesFor(name).length)] as const)
  expect(new Map(listedCapabilities)).toEqual(new Map(declaredCapabilities))
})

test('documented limits match the contract', () => {
  const rows = [...read('docs/operations.md').matchAll(/^\| (.+ of one (?:batch|user|organisation)) \| (\d+)/gm)]
  expect(Object.fromEntries(rows.map(([, name, limit]) => [name, Number(limit)]))).toEqual({
    'jobs of one batch': batchLimit,
    'API tokens of one user': apiTokenLimit,
    'saved filters of one user': savedFilterLimit,
    'sites of one organisation': siteLimit,
    'enrollment keys of one organisation': enrollmentKeyLimit,
    'webhooks of one organisation': webhookLimit,
    // Core does not export this constant.
    'identity providers of one organisation': 50,
  })
})

// Settings that the runner or the deployment sets, or that only tests use.
const internalSettings =
  /^PLAT_(?:QUEUE_|SECRET_|CHANNEL_(?:ENDPOINT|PREFIX|URL)|FUNCTION_[AP]|(?:MODULE|RELEASE)_KEYS|MODULE_(?:HOST|LOG|PRE|PROC|REG|REP|ROL|RUN)|UPDATE_[ST]|(?:TABLE|ASSETS_DIR|DEMO|STARTED_AT_MS|FAILPOINT|VALIDATE_RESPONSES|ADMIN_TOKEN_COMMAND|WRITE_CHECK_INTERVAL_SECONDS)$)/

test('docs/operations.md lists every setting once', () => {
  const schemas = ['core/src/lib/settings/schema.ts', 'local/src/settings.ts'].map((file) => read(`packages/${file}`))
  const names = schemas.flatMap((text) => [...text.matchAll(/^ {2}(PLAT_\w+):/gm)].map(([, name = '']) => name))
  const rows = [...read('docs/operations.md').matchAll(/^\| (`PLAT_[^|]+) \|.+\|.+\|$/gm)]
  const listedNames = rows.flatMap(([, cell = '']) => [...cell.matchAll(/PLAT_\w+/g)].map(String))
  const settings = new Set(names.filter((name) => !internalSettings.test(name)))
  expect(listedNames.toSorted()).toEqual([...settings].toSorted())
})

/** Sections of ASVS 5.0, each with its number of requirements of levels 1 and 2. */
const asvsSections = `
  1.1 2  1.2 9  1.3 11  1.4 3  1.5 2  2.1 3  2.2 3  2.3 4  2.4 1
  3.2 2  3.3 4  3.4 6  3.5 5  3.7 2  4.1 3  4.2 1  4.3 2  4.4 4
  5.1 1  5.2 3  5.3 2  5.4 3  6.1 3  6.2 12  6.3 4  6.4 4  6.5 5  6.6 3  6.8 4
  7.1 3  7.2 4  7.3 2  7.4 5  7.5 2  7.6 2  8.1 2  8.2 3  8.3 1  8.4 1  9.1 3  9.2 4
  10.1 2  10.2 2  10.3 4  10.4 11  10.5 5  10.6 2  10.7 3  11.1 2  11.2 3  11.3 3  11.4 4  11.5 1  11.6 1
  12.1 3  12.2 2  12.3 4  13.1 1  13.2 5  13.3 2  13.4 5  14.1 2  14.2 4  14.3 3
  15.1 3  15.2 3  15.3 7  16.1 1  16.2 5  16.3 4  16.4 3  16.5 3  17.1 1  17.2 4  17.3 2
`

test('docs/asvs.md covers each of the 253 requirements once and lists the unmet ones', () => {
  const requiredIds = [...asvsSections.matchAll(/(\d+\.\d+) (\d+)/g)].flatMap(([, section, count]) =>
    Array.from({ length: Number(count) }, (_, index) => `${section}.${index + 1}`),
  )
  expect(requiredIds).toHaveLength(253)
  const text = read('docs/asvs.md')
  const partOf = (heading: string) => text.split(/^## /m).find((part) => part.startsWith(heading)) ?? ''
  const idsIn = (part: string): string[] => part.match(/\b\d+\.\d+\.\d+\b/g) ?? []
  const levels = text.replace(partOf('Beyond level 2'), '')
  const rows = [...levels.matchAll(/^\| ([\d.]+) \| .+? \| (yes|part|no) \| .+ \|$/gm)]
  const ids = rows.map(([, id = '']) => id)
  const inapplicableIds = idsIn(partOf('What does not apply')).filter((id) => !ids.includes(id))
  expect([...ids, ...inapplicableIds].toSorted()).toEqual(requiredIds.toSorted())
  const unmetRequirements = rows.flatMap(([, id = '', state]) => (state === 'no' ? [id] : []))
  expect(idsIn(partOf('What is not met')).toSorted()).toEqual(unmetRequirements.toSorted())
})
