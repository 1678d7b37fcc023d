import * as z from 'zod'
import { functionOf } from './lambda.ts'
import { operation } from './operation.ts'
import { invalidValue } from './refusals.ts'

const Resource = z.string().regex(/^arn:/)
const Tags = z.record(z.string().min(1).max(128), z.string().max(256))
const maximumTags = 50

export const tagResource = operation(z.object({ Resource, Tags }), (lambda, request) => {
  const found = functionOf(lambda, { FunctionName: request.Resource })
  const tags = { ...found.tags, ...request.Tags }
  if (Object.keys(tags).length > maximumTags) throw invalidValue(`A function has at most ${maximumTags} tags.`)
  found.tags = tags
  return {}
})

const Keys = z.union([z.string().transform((key) => [key]), z.array(z.string())])

export const untagResource = operation(z.object({ Resource, tagKeys: Keys }), (lambda, request) => {
  const found = functionOf(lambda, { FunctionName: request.Resource })
  const kept = Object.entries(found.tags).filter(([key]) => !request.tagKeys.includes(key))
  found.tags = Object.fromEntries(kept)
  return {}
})

export const listTags = operation(z.object({ Resource }), (lambda, request) => ({
  Tags: functionOf(lambda, { FunctionName: request.Resource }).tags,
}))
