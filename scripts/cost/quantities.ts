import { type PriceName, priceNames, type Prices } from './inputs.ts'

/** What is paid for, by the names of the prices. */
export type Quantities = Partial<Record<PriceName, number>>

const isPriceName = (name: string): name is PriceName => priceNames.some((each) => each === name)
const entries = (quantities: Quantities): [PriceName, number][] =>
  Object.entries(quantities).flatMap(([name, count]) => (isPriceName(name) ? [[name, count]] : []))

export function plus(...all: readonly Quantities[]): Quantities {
  const sum: Quantities = {}
  for (const quantities of all) for (const [name, count] of entries(quantities)) sum[name] = (sum[name] ?? 0) + count
  return sum
}

export const times = (quantities: Quantities, factor: number): Quantities =>
  Object.fromEntries(entries(quantities).map(([name, count]) => [name, count * factor]))

/** What quantities cost, in dollars; `isFree` takes off what an account gets for nothing each month. */
export const costOf = (quantities: Quantities, { prices }: Prices, isFree = false): number =>
  entries(quantities).reduce((sum, [name, count]) => {
    const { usd, per, free = 0 } = prices[name]
    return sum + (Math.max(0, count - (isFree ? free : 0)) * usd) / per
  }, 0)

/** The share of each service in a cost, the largest first. */
export function sharesOf(quantities: Quantities, prices: Prices): [service: string, usd: number][] {
  const shares = new Map<string, number>()
  for (const [name, count] of entries(quantities)) {
    const { service } = prices.prices[name]
    shares.set(service, (shares.get(service) ?? 0) + costOf({ [name]: count }, prices))
  }
  return [...shares].toSorted(([, one], [, other]) => other - one)
}
