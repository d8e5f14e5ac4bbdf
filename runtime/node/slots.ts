/** A place in a queue that a fleet shares, so that never more than so many units restart at once. */
export interface Slots {
  /** Waits for a free slot. Undefined when none was had within one window: then the spread alone decides. */
  take(signal: AbortSignal): Promise<Slot | undefined>;
}

export interface Slot {
  /** Gives the slot back. Never throws: a slot that cannot be given back runs out by itself. */
  release(): Promise<void>;
}
