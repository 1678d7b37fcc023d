import { test as base } from 'vitest'
import type { Page } from 'playwright-core'
import { expectStatus } from '../../conformance/support/answer.ts'
import { newUserBody, type TestUser } from '../../conformance/support/person.ts'
import { connect, type Platform } from '../../conformance/support/platform.ts'
import { options, PlatformProcess } from '../platform.ts'
import { chromiumOfWorker, skipReason } from './chromium.ts'
import {
  administrator,
  closePage,
  type Credentials,
  errorsOf,
  newContext,
  signIn,
  type View,
  waitForPage,
} from './open.ts'
import { showPrograms } from '../program.ts'
import { takeScreenshot } from './screenshot.ts'
import type { SeedIds } from './seed.ts'
import type { SharedPlatform } from './shared-process.ts'
import { sharedPlatformVariable } from './shared-start.ts'

export type NewPage = (view?: View) => Promise<Page>

export type Open = (path: string, view?: View) => Promise<Page>

/**
 * Opens a path in the page and session that all tests of the file share. Faster than `Open`, for tests that only read.
 */
export type Visit = (path: string, view?: Pick<View, 'allow' | 'width' | 'height'>) => Promise<Page>

/** Shorter than the life of an access token, so that shared pages never have to renew theirs. */
const signInEveryMs = 300_000

/**
 * A browser test with its own platform. Per file, created on first use: `platform` (a process with `settings`, before
 * setup), `api` (completes setup), `browser` and `user` (the user who opens pages). Per test: `open`, `newPage` and
 * `visit`. A test fails if its pages caused errors, see page-errors.ts.
 */
export const testOnOwnPlatform = base
  .extend('settings', { scope: 'file' }, (): Record<string, string> => ({}))
  .extend('platform', { scope: 'file' }, async ({ settings }, { onCleanup }) => {
    const platform = await PlatformProcess.start(settings)
    onCleanup(() => platform[Symbol.asyncDispose]())
    return platform
  })
  .extend('origin', { scope: 'file' }, ({ platform }) => platform.url)
  .extend('api', { scope: 'file' }, ({ platform }): Promise<Platform> => platform.setUp())
  .extend('user', { scope: 'file' }, (): Credentials => administrator)
  .extend('browser', { scope: 'file' }, () => (skipReason === '' ? chromiumOfWorker() : undefined))
  .extend('newPage', async ({ browser, origin, user, skip, task }, { onCleanup }): Promise<NewPage> => {
    if (!browser) return skip(skipReason)
    const pages: Page[] = []
    onCleanup(() => closePages(pages, task.result?.state === 'fail' ? task.name : undefined))
    return async (view) => {
      const context = await newContext(browser, origin, { as: user, ...view })
      const page = await context.newPage()
      pages.push(page)
      return page
    }
  })
  .extend('open', ({ newPage }): Open => async (path, view) => {
    const page = await newPage(view)
    await page.goto(path)
    await waitForPage(page)
    return page
  })
  .extend('sharedPage', { scope: 'file' }, async ({ browser, origin }, { onCleanup }) => {
    if (!browser) return undefined
    const context = await newContext(browser, origin, { as: 'anonymous' })
    onCleanup(() => context.close())
    return { page: await context.newPage(), signedInAtMs: -Infinity }
  })
  .extend('visit', ({ sharedPage, origin, user, skip, task }, { onCleanup }): Visit => {
    if (!sharedPage) return skip(skipReason)
    const { page } = sharedPage
    const errors = errorsOf(page)
    onCleanup(async () => {
      if (task.result?.state === 'fail') await takeScreenshot(page, `failed-${task.name}`).catch(() => undefined)
      // Ends pending requests before the next test. A page of the same origin keeps the renderer process.
      await page.goto('/health/live')
      errors.expectNone()
    })
    return async (path, { allow = [], width = 1280, height = 800 } = {}) => {
      errors.reset()
      errors.allow(...allow)
      if (performance.now() - sharedPage.signedInAtMs > signInEveryMs) {
        await signIn(page.context(), origin, user)
        sharedPage.signedInAtMs = performance.now()
      }
      await page.setViewportSize({ width, height })
      await page.goto(path)
      await waitForPage(page)
      return page
    }
  })

async function closePages(pages: readonly Page[], failed: string | undefined): Promise<void> {
  for (const [index, page] of failed === undefined ? [] : pages.entries()) {
    await takeScreenshot(page, `failed-${failed}-${index}`).catch(() => undefined)
  }
  try {
    for (const page of pages) errorsOf(page).expectNone()
  } catch (error) {
    showPrograms()
    throw error
  } finally {
    await Promise.all(pages.map(closePage))
  }
}

const fetchShared = async <Body>(path = ''): Promise<Body> => {
  const response = await fetch(`${process.env[sharedPlatformVariable]}${path}`)
  return (await response.json()) as Body
}

const testOnSharedPlatform = testOnOwnPlatform
  .extend('shared', { scope: 'file' }, () => fetchShared<SharedPlatform>())
  .override('origin', { scope: 'file' }, ({ shared }) => shared.url)

/**
 * A browser test on the run's shared platform, whose relays send no heartbeats. Each file has its own organisation;
 * `api.admin` and `user` are its first administrator.
 */
export const test = testOnSharedPlatform
  .extend('tenant', { scope: 'file' }, ({ shared }) => newTenant(shared.url))
  .override('api', { scope: 'file' }, ({ tenant: { platform, person } }) => platform.as(person))
  .override('user', { scope: 'file' }, ({ tenant: { person } }) => person)

/**
 * A browser test as the administrator of the shared platform. Other files run concurrently: use unique names, remove
 * created resources, and only read `seed`.
 */
export const testAsAdministrator = testOnSharedPlatform
  .extend('seed', { scope: 'file' }, ({ shared: _started }) => fetchShared<SeedIds>('/seed'))
  .override('api', { scope: 'file' }, ({ shared }) => connect({ ...options, baseUrl: shared.url }))

async function newTenant(baseUrl: string): Promise<{ platform: Platform; person: TestUser }> {
  const platform = await connect({ ...options, baseUrl })
  const admin = await platform.admin
  const name = platform.newName()
  const { id: organisationId } = expectStatus(await admin.post('/api/v1/platform/organisations', { name }), 201)
  const body = newUserBody(['OrgAdmin'])
  const { id } = expectStatus(await admin.post('/api/v1/users', { ...body, organisationId }), 201)
  const tokens = await platform.signIn(body)
  const client = platform.anonymous.withToken(tokens.accessToken)
  return { platform, person: { id, organisationId, ...body, tokens, client } }
}
