/** A delay that adapts until both sides win equally often, even on a busy machine. */
export class BalancedDelay {
  #ms = 4

  next(random: number): number {
    return Math.floor(this.#ms * (0.5 + random))
  }

  adjust(wasTooEarly: boolean): void {
    this.#ms = wasTooEarly ? Math.min(this.#ms * 1.6 + 1, 2000) : this.#ms * 0.6
  }
}
