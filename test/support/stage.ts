import { expect } from 'vitest'
import { type Answer, answered } from '../conformance/support/answer.ts'
import { over } from '../conformance/support/modules.ts'
import { startAuthor } from './author.ts'
import { PlatformProcess } from './platform.ts'

/** A platform with a module that runs and does as it should, and an author who makes others. */
export async function startStage(settings: Record<string, string> = {}, allowed: readonly string[] = []) {
  await using starting = new AsyncDisposableStack()
  const author = starting.use(await startAuthor())
  const platform = starting.use(
    await PlatformProcess.start({
      ...author.settings,
      PLAT_OUTBOUND_ALLOW: [author.settings.PLAT_OUTBOUND_ALLOW, ...allowed].join(),
      // The catalog is of no concern: everything is installed by its image.
      PLAT_MODULE_SOURCES: '',
      PLAT_MODULE_TICK_SECONDS: '1',
      ...settings,
    }),
  )
  const api = await platform.setUp()
  const admin = await api.admin

  const ask = (imageRef: string, rest: object = {}): Promise<Answer> =>
    admin.post('/api/modules/install', { imageRef, ...rest })
  /** The job of an installation when it is over. */
  const installed = async (reference: string) => over(api, answered(await ask(reference), 202))
  const uninstalled = async (id: string) => over(api, answered(await admin.delete(`/api/modules/${id}`), 202))

  /** The platform serves, and so does the module that has nothing to do with all this. */
  async function expectBystander(): Promise<void> {
    expect(answered(await admin.get('/api/bystander'), 200)).toEqual({ version: '1.0.0', isOpen: true })
    const { checks } = answered(await api.anonymous.get('/health/ready'), 200)
    expect(checks.find(({ name }: any) => name === 'database')).toMatchObject({ status: 'Healthy' })
  }

  /** And it is the only one. */
  async function expectUntouched(): Promise<void> {
    await expectBystander()
    expect(answered(await admin.get('/api/v1/modules'), 200).items).toMatchObject([
      { id: 'bystander', state: 'Running' },
    ])
  }

  const { reference } = await author.publish('bystander', { program: 'told bystander 1.0.0' })
  const { status, result } = await installed(reference)
  expect(status, result?.output).toBe('Completed')
  const started = starting.move()
  return {
    author,
    platform,
    api,
    admin,
    ask,
    installed,
    uninstalled,
    expectBystander,
    expectUntouched,
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  }
}

export type Stage = Awaited<ReturnType<typeof startStage>>
