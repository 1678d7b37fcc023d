import { expect, test } from 'vitest'
import { Notification } from '@platform/contract/notification'
import { Module as ModuleSchema } from '@platform/contract/module'
import { latestVersions, readCatalog, storeCatalog } from '@platform/core/modules/catalog/catalog'
import { now } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { get } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { newId } from '@platform/core/id'
import * as Module from '@platform/core/modules/module'
import { requestInstall } from '@platform/core/modules/request-install'
import { reserveRoutesWrite, readRoutes } from '@platform/core/modules/routes'
import { notificationFor } from '@platform/core/notifications/templates'
import { warningsOf } from '@platform/worker/modules/lifecycle/description'
import { reportedState } from '@platform/worker/modules/records'
import { manifestFor } from '../../support/module-manifest.ts'
import { callerOf, refusalOf } from '../../support/world.ts'
import { found, newModuleId, putModule, releaseFor } from '../support/modules.ts'

/** What authors write may be as long as the manifest allows; whatever the platform makes of it fits where it has to. */

const digestOf = (index: number): string => `sha256:${String(index).padStart(64, '0')}`

test('a module whose code has none of its twenty jobs is listed as the contract says', async () => {
  const id = newModuleId()
  const backgroundJobs = Array.from({ length: 20 }, (_, index) => ({
    id: `job-${'x'.repeat(50)}-${index}`,
    description: 'It is not there.',
    intervalSeconds: 60,
  }))
  const manifest = manifestFor(id, { backgroundJobs })
  const description = { sdkVersion: '1', id, version: '9.9.9', state: 'Started', subscriptions: [] } as const
  const warnings = warningsOf({ ...description, slots: [{}], healthChecks: [], jobs: [] }, manifest)
  await putModule(releaseFor(id, { spec: { backgroundJobs } }), reportedState({ subscriptions: [], warnings }))
  expect(ModuleSchema.safeParse(await Module.read(id)).error?.issues).toBeUndefined()
})

test('a notification about a module fits its fields, however long the version is', () => {
  const [moduleId, jobId, version] = ['m'.repeat(50), newId('job'), `1.0.0-${'a'.repeat(250)}`]
  const data = { moduleId, version, jobId, message: 'x'.repeat(1000) }
  const telling = notificationFor({ id: newId('evt'), name: 'module.failed', subject: moduleId, data })
  const { title, body, resource } = Notification.shape
  expect(
    [title, body, resource].map((schema, index) => {
      const value = [telling?.title, telling?.body, telling?.resource][index]
      return schema.safeParse(value).error?.issues
    }),
  ).toEqual([undefined, undefined, undefined])
})

test('a repository whose releases and problems are as long as they can be is stored, and the scan with it', async () => {
  const long = '\u0001'
  const releases = Array.from({ length: 120 }, (_, index) =>
    found(newModuleId(), '1.0.0', {
      digest: digestOf(index),
      name: long.repeat(80),
      description: long.repeat(300),
      isVerified: false,
      reason: 'x'.repeat(500),
    }),
  )
  const others = Array.from({ length: 80 }, (_, index) => ({
    digest: digestOf(1000 + index),
    problem: long.repeat(150),
  }))
  const repository = { reference: 'registry.example.com/hostile', place: 0, releases, others }
  await storeCatalog({ repositories: [repository], scan: { scannedAtMs: now(), problems: [] } }, { repositories: [] })
  const { repositories, scan } = await readCatalog()
  expect(scan).toBeDefined()
  expect(repositories[0]?.releases.length).toBeGreaterThan(50)
})

test('a scan tells the newest versions of as many modules as fit, however long they are', async () => {
  const version = `1.0.0-${'x'.repeat(250)}`
  const releases = Array.from({ length: 1500 }, (_, index) => found(`${'y'.repeat(59)}-${index}`, version))
  const repositories = Array.from({ length: 15 }, (_, place) => ({
    reference: `registry.example.com/${place}`,
    place,
    releases: releases.slice(place * 100, place * 100 + 100),
  }))
  const problems = Array.from({ length: 50 }, () => '\uffff'.repeat(500))
  await storeCatalog({ repositories, scan: { scannedAtMs: now(), problems } }, await readCatalog())
  const latest = latestVersions(await get(keys.catalogScan()))
  expect(latest.size).toBeGreaterThan(200)
  expect(latest.get(releases[0]?.moduleId ?? '')).toBe(version)
})

const standing = async () => ({ row: undefined, routes: await readRoutes() })

test('where there is no room for another module an install says so, and the modules that are there go on', async () => {
  const caller = await callerOf(undefined, 'PlatformAdmin')
  const long = Array.from({ length: 50 }, (_, index) => `module.${'x'.repeat(280)}.${index}`)
  const release = releaseFor(newModuleId())
  const accept = async () =>
    refusalOf(requestInstall(caller, releaseFor(newModuleId()), { first: await standing(), isUnasked: false }))
  let answer = await accept()
  for (let count = 0; answer === 'nothing was refused'; count++) {
    const id = `${release.moduleId}-${count}`
    await transact([reserveRoutesWrite(await readRoutes(), id, { apiBasePath: `/api/${id}`, subscriptions: long })])
    answer = await accept()
  }
  expect(answer).toBe('limit_reached')
  // There is room for what those that were accepted are going to say of themselves.
  const { claims, ...routes } = await readRoutes()
  const [last = ''] = [...claims.keys()].slice(-1)
  await transact([
    reserveRoutesWrite({ claims, ...routes }, last, { apiBasePath: `/api/${last}`, subscriptions: long }),
  ])
})
