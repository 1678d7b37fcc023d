import { type ServiceProvider, type ServiceToken, token } from '@platform/modules'
import { provideServices } from '@platform/modules/services'
import { expect, test, vi } from 'vitest'
import { instanceOf } from '../support/sdk-instance.ts'

const [Clock, Diary, Library] = [token<{ hour: number }>('clock'), token<{ owner: string }>('diary'), token('library')]

const needs =
  (other: ServiceToken<unknown>) =>
  (provider: ServiceProvider): any =>
    provider.get(other)

test('creates a service once, at its first use, in any order of registration', () => {
  let count = 0
  const services = provideServices((collection) =>
    collection
      .addSingleton(Diary, (provider) => ({ owner: `at ${provider.get(Clock).hour}` }))
      .addSingleton(Clock, () => ({ hour: (count += 1) })),
  )
  expect(count).toBe(0)
  expect(services.get(Diary)).toEqual({ owner: 'at 1' })
  expect(services.get(Clock)).toBe(services.get(Clock))
  expect(count).toBe(1)
})

test('rejects circular dependencies with their path', () => {
  const services = provideServices((collection) =>
    collection
      .addSingleton(Clock, needs(Diary))
      .addSingleton(Diary, needs(Library))
      .addSingleton(Library, needs(Clock)),
  )
  expect(() => services.get(Clock)).toThrow('clock → diary → library → clock')
  // The failed attempt leaves no state.
  expect(() => services.get(Diary)).toThrow('diary → library → clock → diary')
})

test('creates a service again after an error', () => {
  const create = vi
    .fn(() => ({ hour: 2 }))
    .mockImplementationOnce(() => {
      throw new Error('Not yet.')
    })
  const services = provideServices((collection) => collection.addSingleton(Clock, create))
  expect(() => services.get(Clock)).toThrow('Not yet.')
  expect(services.get(Clock)).toEqual({ hour: 2 })
})

test('rejects a missing service, and a second registration of a token', () => {
  expect(() => provideServices(() => {}).get(Diary)).toThrow('The service diary is not registered.')
  const create = () => ({ hour: 1 })
  const registerTwice = () =>
    provideServices((collection) => collection.addSingleton(Clock, create).addSingleton(Clock, create))
  expect(registerTwice).toThrow('The service clock is registered already.')
})

test('distinguishes tokens with the same name', () => {
  const otherToken = token<{ hour: number }>('clock')
  const services = provideServices((collection) =>
    collection.addSingleton(Clock, () => ({ hour: 1 })).addSingleton(otherToken, () => ({ hour: 2 })),
  )
  expect([services.get(Clock).hour, services.get(otherToken).hour]).toEqual([1, 2])
})

test('accepts registrations in configureServices only', async () => {
  let callLate: (() => unknown) | undefined
  const { host } = instanceOf({
    configureServices: (services) => {
      services.addSingleton(Clock, () => ({ hour: 9 }))
      callLate = () => services.addSingleton(Diary, () => ({ owner: 'late' }))
    },
  })
  expect(host.context.services.get(Clock)).toEqual({ hour: 9 })
  expect(() => callLate?.()).toThrow('configureServices')
})
