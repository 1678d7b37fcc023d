import { expect, onTestFinished, test } from 'vitest'
import { readOptions, UsageError } from './support/options.ts'
import { claimFolder, writeState } from '../simulator/state.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** An environment with a folder for a rehearsal. */
async function environment(): Promise<{ PLAT_REHEARSAL_DIR: string }> {
  const folder = await temporaryFolder()
  onTestFinished(() => folder[Symbol.asyncDispose]())
  return { PLAT_REHEARSAL_DIR: folder.path }
}

/** In it, this process says that it is a rehearsal. */
async function rehearsing(isReady = true): Promise<{ PLAT_REHEARSAL_DIR: string }> {
  const where = await environment()
  const claim = claimFolder(where.PLAT_REHEARSAL_DIR)
  onTestFinished(() => claim?.[Symbol.dispose]())
  const outboundAllow = '127.0.0.1:9001, 10.0.0.7:80,[::1]:9002'
  const secrets = { secretsUrl: '', accessKeyId: '', initialAdminTokenSecret: '' }
  const ready = { url: 'http://127.0.0.1:4711', outboundAllow, ...secrets }
  writeState(where.PLAT_REHEARSAL_DIR, { stage: 'dev', ...(isReady && { ready }) })
  return where
}

const refusalOf = (args: string[], environment: NodeJS.ProcessEnv): unknown => {
  try {
    return readOptions(args, environment)
  } catch (error) {
    return error
  }
}

test('without a target the rehearsal that runs is meant, with its own receivers and its own way to the token', async () => {
  expect(readOptions([], { ...(await rehearsing()), PLAT_OUTBOUND_ALLOW: '127.0.0.1:1' })).toEqual({
    baseUrl: 'http://127.0.0.1:4711',
    isLocal: true,
    username: 'admin',
    password: 'correct horse battery',
    initialAdminToken: undefined,
    howToRetrieve: 'npm run -s deploy:rehearsal -- --token',
    receivers: ['127.0.0.1:9001', '[::1]:9002'],
  })
})

test('where none runs, one begins, or a killed one has left its state, it says what to do', async () => {
  const none = refusalOf([], await environment())
  expect(none).toBeInstanceOf(UsageError)
  expect(none).toMatchObject({
    message: expect.stringMatching(/No rehearsal .* npm run deploy:rehearsal .* --base-url/),
  })

  expect(refusalOf([], await rehearsing(false))).toMatchObject({ message: expect.stringContaining('is not ready') })

  const killed = await environment()
  writeState(killed.PLAT_REHEARSAL_DIR, { stage: 'dev' })
  expect(refusalOf([], killed)).toMatchObject({ message: expect.stringContaining('No rehearsal') })
})

test('a platform that is named is that platform, whether a rehearsal runs or not', async () => {
  const environment = { ...(await rehearsing()), PLAT_OUTBOUND_ALLOW: '127.0.0.1:7,198.51.100.1:80' }
  const local = readOptions(['--base-url', 'http://127.0.0.1:8080/'], environment)
  expect(local).toMatchObject({ baseUrl: 'http://127.0.0.1:8080', isLocal: true, receivers: ['127.0.0.1:7'] })
  expect(local).not.toHaveProperty('howToRetrieve')
})

test('a platform elsewhere is given no well-known password and no port of this machine', async () => {
  const environment = await rehearsing()
  const args = ['--base-url', 'https://platform.example.com']
  expect(refusalOf(args, environment)).toBeInstanceOf(UsageError)
  const settings = { PLAT_CONFORMANCE_PASSWORD: 'its own password', PLAT_OUTBOUND_ALLOW: '127.0.0.1:7' }
  const options = readOptions(args, { ...environment, ...settings })
  expect(options).toMatchObject({ isLocal: false, password: 'its own password', receivers: [] })
})

test.each(['', 'nonsense', '127.0.0.1:8080/', 'localhost:8080'])(
  '%j is no address of a platform, and no rehearsal is taken for it',
  async (url) => {
    expect(refusalOf([`--base-url=${url}`], await rehearsing())).toBeInstanceOf(UsageError)
  },
)

test('the token of the command line comes before that of the environment', async () => {
  const environment = { ...(await rehearsing()), PLAT_INITIAL_ADMIN_TOKEN: 'admin.one' }
  expect(readOptions([], environment)).toMatchObject({ initialAdminToken: 'admin.one' })
  expect(readOptions(['--token', 'admin.two'], environment)).toMatchObject({ initialAdminToken: 'admin.two' })
})

test('areas are named one after another, and all are meant where none is named', async () => {
  const environment = await rehearsing()
  expect(readOptions(['--only', 'Setup,Bad input'], environment)).toMatchObject({ only: ['Setup', 'Bad input'] })
  expect(readOptions([], environment)).not.toHaveProperty('only')
})
