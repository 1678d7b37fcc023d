import { type ServiceProvider, type ServiceToken, token } from '@platform/modules'
import { provideServices } from '@platform/modules/services'
import { expect, test } from 'vitest'
import { instanceOf } from '../support/sdk-instance.ts'

const [Clock, Diary, Library] = [token<{ hour: number }>('clock'), token<{ owner: string }>('diary'), token('library')]

/** Makes a service of another one. */
const needs =
  (other: ServiceToken<unknown>) =>
  (provider: ServiceProvider): any =>
    provider.get(other)

test('a service is made when it is first asked for, and once', () => {
  let made = 0
  const services = provideServices((collection) => collection.addSingleton(Clock, () => ({ hour: (made += 1) })))
  expect(made).toBe(0)
  expect(services.get(Clock)).toBe(services.get(Clock))
  expect(made).toBe(1)
})

test('a service is made with the help of others, in whatever order they were registered', () => {
  const services = provideServices((collection) =>
    collection
      .addSingleton(Diary, (provider) => ({ owner: `at ${provider.get(Clock).hour}` }))
      .addSingleton(Clock, () => ({ hour: 7 })),
  )
  expect(services.get(Diary)).toEqual({ owner: 'at 7' })
})

test('services that need each other in a circle are refused with the way round', () => {
  const services = provideServices((collection) =>
    collection
      .addSingleton(Clock, needs(Diary))
      .addSingleton(Diary, needs(Library))
      .addSingleton(Library, needs(Clock)),
  )
  expect(() => services.get(Clock)).toThrow('clock → diary → library → clock')
  // Nothing is left over of the failed attempt.
  expect(() => services.get(Diary)).toThrow('diary → library → clock → diary')
})

test('a service whose making fails is made again when it is asked for again', () => {
  let tries = 0
  const services = provideServices((collection) =>
    collection.addSingleton(Clock, () => {
      tries += 1
      if (tries === 1) throw new Error('Not yet.')
      return { hour: tries }
    }),
  )
  expect(() => services.get(Clock)).toThrow('Not yet.')
  expect(services.get(Clock)).toEqual({ hour: 2 })
})

test('a service that nobody has registered is named', () => {
  expect(() => provideServices(() => {}).get(Diary)).toThrow('The service diary is not registered.')
})

test('a token can be registered once', () => {
  const twice = provideServices.bind(undefined, (collection) =>
    collection.addSingleton(Clock, () => ({ hour: 1 })).addSingleton(Clock, () => ({ hour: 2 })),
  )
  expect(twice).toThrow('The service clock is registered already.')
})

test('two tokens of one name are two services', () => {
  const other = token<{ hour: number }>('clock')
  const services = provideServices((collection) =>
    collection.addSingleton(Clock, () => ({ hour: 1 })).addSingleton(other, () => ({ hour: 2 })),
  )
  expect([services.get(Clock).hour, services.get(other).hour]).toEqual([1, 2])
})

test('a module registers services in configureServices, and nowhere else', async () => {
  let late: (() => unknown) | undefined
  const { host } = instanceOf({
    configureServices: (services) => {
      services.addSingleton(Clock, () => ({ hour: 9 }))
      late = () => services.addSingleton(Diary, () => ({ owner: 'late' }))
    },
  })
  expect(host.context.services.get(Clock)).toEqual({ hour: 9 })
  expect(() => late?.()).toThrow('configureServices')
})
