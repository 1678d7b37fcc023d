import { randomInt } from 'node:crypto'
import * as z from 'zod'
import { operation } from './operation.ts'
import { invalidParameter } from './refusals.ts'

const lowercase = 'abcdefghijklmnopqrstuvwxyz'
const digits = '0123456789'
const punctuation = '!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~'

const Request = z.object({
  PasswordLength: z.int().min(1).max(4096).default(32),
  ExcludeCharacters: z.string().max(4096).default(''),
  ExcludeLowercase: z.boolean().default(false),
  ExcludeUppercase: z.boolean().default(false),
  ExcludeNumbers: z.boolean().default(false),
  ExcludePunctuation: z.boolean().default(false),
  IncludeSpace: z.boolean().default(false),
  RequireEachIncludedType: z.boolean().default(true),
})

export const getRandomPassword = operation(Request, (_secrets, request) => {
  const types = characterTypes(request)
  const required = request.RequireEachIncludedType ? types : []
  if (types.length === 0 || required.length > request.PasswordLength) {
    throw invalidParameter('The password is too short for the character types that it must include.')
  }
  const all = types.flat()
  const rest = Array.from({ length: request.PasswordLength - required.length }, () => all)
  return { RandomPassword: shuffled([...required, ...rest].map(pick)).join('') }
})

/** The characters to choose from, by type, without types that are excluded completely. */
function characterTypes(request: z.output<typeof Request>): string[][] {
  const types = [
    request.ExcludeLowercase ? '' : lowercase,
    request.ExcludeUppercase ? '' : lowercase.toUpperCase(),
    request.ExcludeNumbers ? '' : digits,
    request.ExcludePunctuation ? '' : punctuation,
    request.IncludeSpace ? ' ' : '',
  ]
  return types
    .map((type) => type.split('').filter((character) => !request.ExcludeCharacters.includes(character)))
    .filter((type) => type.length > 0)
}

const pick = (characters: readonly string[]) => characters[randomInt(characters.length)]!

function shuffled(items: readonly string[]): string[] {
  const left = [...items]
  return items.map(() => left.splice(randomInt(left.length), 1)[0]!)
}
