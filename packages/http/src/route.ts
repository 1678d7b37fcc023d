import type { EndpointDefinition } from '@platform/contract/endpoint'
import type { Caller, Origin, RelayCaller } from '@platform/core/caller'
import type * as z from 'zod'
import type { Result, ResultOf } from './result.ts'

type CallerOf<Definition extends EndpointDefinition> = Definition['access'] extends 'public'
  ? undefined
  : Definition['access'] extends 'relay'
    ? RelayCaller
    : Caller

type PartOf<Definition extends EndpointDefinition, Part extends 'params' | 'query'> = Definition extends {
  request: Record<Part, infer Schema extends z.ZodType>
}
  ? z.output<Schema>
  : undefined

type BodyOf<Definition extends EndpointDefinition> = Definition extends { validatesBody: true }
  ? unknown
  : Definition extends {
        request: { body: { content: { 'application/json': { schema: infer Schema extends z.ZodType } } } }
      }
    ? z.output<Schema>
    : undefined

/** The caller and the validated parts of a request, typed by the endpoint. */
export interface Input<Definition extends EndpointDefinition> {
  caller: CallerOf<Definition>
  params: PartOf<Definition, 'params'>
  query: PartOf<Definition, 'query'>
  /** The parsed JSON if the use case validates the body; undefined if the body is not a JSON object. */
  body: BodyOf<Definition>
  origin: Origin
  /** Names are lower-case. */
  headers: Readonly<Record<string, string | undefined>>
}

type Handler<Definition extends EndpointDefinition> = (
  input: Input<Definition>,
) => ResultOf<Definition> | Promise<ResultOf<Definition>>

/** The input of any route: the caller and the validated parts of a request. */
export interface CheckedInput {
  caller: Caller | RelayCaller | undefined
  params: unknown
  query: unknown
  body: unknown
  origin: Origin
  headers: Readonly<Record<string, string | undefined>>
}

export interface Route {
  endpoint: EndpointDefinition
  // This is a method, because TypeScript compares methods bivariantly. The endpoint's schemas guarantee the input.
  handle(input: CheckedInput): Result | Promise<Result>
}

/** Binds a handler to its endpoint. The compiler rejects a handler whose results the endpoint does not define. */
export const route = <const Definition extends EndpointDefinition>(
  endpoint: Definition,
  handle: Handler<Definition>,
): Route => ({ endpoint, handle })
