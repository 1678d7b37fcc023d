import { resolve } from 'node:path'
import { parseConfig } from '@platform/core/config'
import { BadSettings, parseSettings } from '@platform/local/settings'
import { expect, test } from 'vitest'

test('without an environment the platform is private to this machine', () => {
  expect(parseSettings({})).toMatchObject({
    host: '127.0.0.1',
    port: 8080,
    dataDir: resolve('.platform'),
    functionThreads: 2,
    functionTimeoutMs: 30_000,
    sweepIntervalSeconds: 60,
    functionsDir: resolve('functions'),
    assetsDir: resolve('dist'),
  })
})

test('the environment sets what it names; an empty value sets nothing', () => {
  const settings = parseSettings({
    PLAT_PORT: '0',
    PLAT_HOST: '::1',
    PLAT_DATA_DIR: '/var/lib/platform',
    PLAT_SWEEP_INTERVAL_SECONDS: '1',
    PLAT_FUNCTION_THREADS: '',
    LANG: 'C',
  })
  expect(settings).toMatchObject({ port: 0, host: '::1', dataDir: '/var/lib/platform', sweepIntervalSeconds: 1 })
  expect(settings.functionThreads).toBe(2)
})

test('one error names every bad setting', () => {
  const bad = {
    PLAT_PORT: '70000',
    PLAT_SWEEP_INTERVAL_SECONDS: 'often',
    PLAT_LIMIT_API_BURST: '-1',
    PLAT_API_URL: 'x',
  }
  expect(() => parseSettings(bad)).toThrow(BadSettings)
  try {
    parseSettings(bad)
  } catch (error) {
    for (const name of Object.keys(bad)) expect(String(error)).toContain(`${name}: `)
  }
})

test.for(['1e3', '0x10', ' 5', '5.0', '٣'])('%j is not a whole number', (text) => {
  expect(() => parseSettings({ PLAT_PORT: text })).toThrow('PLAT_PORT: must be a whole number')
})

test('functions get every PLAT name, and limits that are high unless the environment sets them', () => {
  const { functionEnvironment } = parseSettings({
    PLAT_LIMIT_SETUP_PER_MINUTE: '3',
    PLAT_OUTBOUND_ALLOW: '10.0.0.1:443',
    AWS_PROFILE: 'private',
  })
  const config = parseConfig(functionEnvironment)
  expect(config.PLAT_LIMIT_SETUP_PER_MINUTE).toBe(3)
  expect(config.PLAT_LIMIT_ENROLL_PER_MINUTE).toBe(600)
  expect(config.PLAT_LIMIT_API_PER_MINUTE).toBe(60_000)
  expect(functionEnvironment).toHaveProperty('PLAT_OUTBOUND_ALLOW', '10.0.0.1:443')
  expect(functionEnvironment).not.toHaveProperty('AWS_PROFILE')
})

test('what the runner takes for valid, functions take for valid', () => {
  const extremes = [{}, { PLAT_LIMIT_API_BURST: '1000000', PLAT_HEARTBEAT_INTERVAL_SECONDS: '3600' }]
  for (const environment of extremes) {
    expect(() => parseConfig(parseSettings(environment).functionEnvironment)).not.toThrow()
  }
})
