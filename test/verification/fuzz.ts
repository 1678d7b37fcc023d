import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { operationsOf } from '../conformance/support/document.ts'
import { builtAssets } from './assets.ts'
import type { Order, Outcome } from './fuzz/order.ts'
import { all, atLeast, atMost, type Effort, type Figure, none, type Part } from './part.ts'

const document = JSON.parse(readFileSync(new URL('../../packages/contract/openapi.json', import.meta.url), 'utf8'))
const names = operationsOf(document).map(({ method, template }) => `${method} ${template}`)

const requestsEach = 20_000
const requestsEachInShort = 8

/** What the platform is measured on: one process for each. */
const cores = 2

export const part: Part = {
  title: 'Malformed requests',
  how:
    'Every operation of the OpenAPI document is sent requests that are made of a good one and of the document: wrong types, lengths ' +
    'and numbers beside their bounds, members that only answers have, deep and huge JSON, odd texts and encodings, repeated ' +
    'parameters, other content types, other headers; by somebody who may make the request. The document judges each request and ' +
    'each answer. What fails is shown as the smallest request that fails.',
  run: async (effort) => {
    const assetsDir = await builtAssets()
    const count = effort.isShort ? requestsEachInShort : requestsEach
    const processes = effort.isShort ? 1 : cores
    // In the short version every sixth operation.
    const tested = effort.isShort ? names.filter((_, index) => index % 6 === 0) : names
    const orders = Array.from({ length: processes }, (_, index) => ({
      names: tested.filter((__, place) => place % processes === index),
      count,
      warmUp: effort.isShort ? 0 : 1000,
      seed: effort.seed,
      assetsDir,
    }))
    const outcomes = await Promise.all(orders.map((order) => outcomeOf(order, effort)))
    return [...figuresOf(outcomes, tested, count), ...(effort.isShort ? [] : [memoryOf(outcomes)])]
  },
}

async function outcomeOf(order: Order, { say, isShort }: Effort): Promise<Outcome> {
  const program = new URL('fuzz/worker.ts', import.meta.url)
  const child = fork(program, [JSON.stringify(order)])
  const outcomes: Outcome[] = []
  child.on('message', (message: any) => {
    if (message.outcome !== undefined) outcomes.push(message.outcome)
    else if (!isShort) say(`${message.name}: ${Math.round(message.seconds)} s, ${Math.round(message.memoryMb)} MB`)
  })
  await once(child, 'close')
  const [outcome] = outcomes
  if (outcome === undefined) throw new Error('A process of the fuzz has ended before its end.')
  for (const line of Object.values(outcome.tally.failures).flat()) if (line !== '') say(line)
  return outcome
}

function figuresOf(outcomes: readonly Outcome[], tested: readonly string[], count: number): Figure[] {
  const sum = (of: (outcome: Outcome) => number): number => outcomes.reduce((total, each) => total + of(each), 0)
  const failed = (kind: keyof Outcome['tally']['failures']): number => sum(({ tally }) => tally.failures[kind].length)
  const counts = new Map(outcomes.flatMap((each) => Object.entries(each.counts)))
  const requests = sum(({ tally }) => tally.requests)
  const malformed = sum(({ tally }) => tally.malformed)
  const of = `${requests.toLocaleString('en')} requests`
  const fewest = Math.min(...tested.map((name) => counts.get(name) ?? 0))
  return [
    all(
      'operations that answer a good request, and then bad ones',
      tested.length - failed('goodRefused'),
      tested.length,
    ),
    atLeast('malformed requests to each operation (odd ones to those without parameters and body)', fewest, count),
    none('answers 5xx', failed('serverError'), of),
    none(
      'answers with a status, a header, a code or a body that the document does not have',
      failed('undocumented'),
      of,
    ),
    none(
      'requests that the document does not have and that succeed',
      failed('accepted'),
      malformed.toLocaleString('en'),
    ),
    none('requests that are refused for their form and have written something', failed('written'), of),
    none(
      'rows of the store with what requests have planted beside the documented members',
      sum((each) => each.planted),
    ),
    none('requests that have changed a prototype', failed('polluted'), of),
  ]
}

/** A few requests are still about what is loaded and compiled for the first time. */
const memoryOf = (outcomes: readonly Outcome[]): Figure =>
  atMost('growth of the memory of a process', Math.max(...outcomes.map(({ grownMb }) => grownMb)), 50, ' MB')
