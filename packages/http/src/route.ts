import type { EndpointDefinition } from '@platform/contract/endpoint'
import type { Caller, Origin, RelayCaller } from '@platform/core/caller'
import type * as z from 'zod'
import type { Result, ResultOf } from './result.ts'

type CallerOf<Definition extends EndpointDefinition> = Definition['access'] extends 'public'
  ? undefined
  : Definition['access'] extends 'relay'
    ? RelayCaller
    : Caller

type PartOf<Definition extends EndpointDefinition, Part extends 'params' | 'query' | 'body'> = Definition extends {
  request: Record<Part, infer Schema extends z.ZodType>
}
  ? z.output<Schema>
  : undefined

type BodyOf<Definition extends EndpointDefinition> = Definition extends { request: { bodyCheckedByVerb: true } }
  ? unknown
  : PartOf<Definition, 'body'>

/** What a handler is given: who calls, and the valid parts of the request. */
export interface Input<Definition extends EndpointDefinition> {
  caller: CallerOf<Definition>
  params: PartOf<Definition, 'params'>
  query: PartOf<Definition, 'query'>
  /** Where the verb checks the body itself: the parsed JSON, or undefined where it is none. */
  body: BodyOf<Definition>
  origin: Origin
  /** Names are lower-case. */
  headers: Readonly<Record<string, string | undefined>>
}

type Handler<Definition extends EndpointDefinition> = (
  input: Input<Definition>,
) => ResultOf<Definition> | Promise<ResultOf<Definition>>

/** The parts of a request, once they fit the endpoint that they are handed to. */
export interface CheckedInput {
  caller: Caller | RelayCaller | undefined
  params: unknown
  query: unknown
  body: unknown
  origin: Origin
  headers: Readonly<Record<string, string | undefined>>
}

/** An endpoint with the handler that answers it. */
export interface Route {
  endpoint: EndpointDefinition
  // A method, because methods compare loosely: the endpoint's own schemas make the input what its handler expects.
  handle(input: CheckedInput): Result | Promise<Result>
}

/** Binds a handler to its endpoint. One that answers what the endpoint does not promise does not compile. */
export const route = <const Definition extends EndpointDefinition>(
  endpoint: Definition,
  handle: Handler<Definition>,
): Route => ({ endpoint, handle })
