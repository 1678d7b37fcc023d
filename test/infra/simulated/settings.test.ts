import { expect, test } from 'vitest'
import { operatorSettings } from '../../simulator/settings.ts'

test('what nobody has set has room for a conformance run, with addresses of this machine to receive webhooks at', async () => {
  const settings = await operatorSettings({ PATH: '/bin' })
  expect(settings).toMatchObject({ PLAT_HEARTBEAT_INTERVAL_SECONDS: '1', PLAT_LIMIT_SETUP_PER_MINUTE: '600' })
  expect(settings).not.toHaveProperty('PATH')
  const addresses = settings['PLAT_OUTBOUND_ALLOW']?.split(',') ?? []
  expect(addresses).toEqual(Array.from({ length: 3 }, () => expect.stringMatching(/^127\.0\.0\.1:\d+$/)))
  expect(new Set(addresses).size).toBe(3)
})

test('what the operator has set counts, and what is set to nothing is the platform’s own default', async () => {
  const given = {
    PLAT_HEARTBEAT_INTERVAL_SECONDS: '45',
    PLAT_LIMIT_SETUP_PER_MINUTE: '',
    PLAT_OUTBOUND_ALLOW: '10.0.0.7:443',
    PLAT_MODULE_SOURCES: 'registry.example.com/one',
  }
  expect(await operatorSettings(given)).toMatchObject(given)
})
