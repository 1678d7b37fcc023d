import { Fragment, memo, type UIEvent, useEffect, useRef } from 'react'
import { lostText, type OutputRow } from './output-row.ts'
import styles from './output-panel.module.css'
import { plainText } from './plain-text.ts'

interface OutputLinesProps {
  rows: readonly OutputRow[]
  /** Set if several nodes write output. */
  nameOf: ((nodeId: string) => string) | undefined
  /** Whether to scroll to new output. */
  isFollowing: boolean
  /** Reports whether the user is at the end or has scrolled up. */
  onScrolled: (isAtEnd: boolean) => void
}

/** Browsers round scroll positions. */
const nearPx = 4

/** Output in order of arrival, prefixed with the node if there are several. */
export function OutputLines({ rows, nameOf, isFollowing, onScrolled }: OutputLinesProps) {
  const box = useRef<HTMLPreElement>(null)
  const lastTop = useRef(0)
  useEffect(() => {
    if (isFollowing) box.current?.scrollTo({ top: box.current.scrollHeight })
  }, [rows, isFollowing])
  const onScroll = ({ currentTarget: { scrollTop, scrollHeight, clientHeight } }: UIEvent<HTMLPreElement>) => {
    const isAtEnd = scrollHeight - clientHeight - scrollTop < nearPx
    // Only scrolling up stops following, not new output below.
    if (isAtEnd || scrollTop < lastTop.current) onScrolled(isAtEnd)
    lastTop.current = scrollTop
  }
  return (
    <pre
      ref={box}
      role="log"
      className={styles['output']}
      tabIndex={0}
      aria-label="Output of the job"
      onScroll={onScroll}
    >
      {rows.map(({ part: { offset, nodeId, stream, data }, lostBytes }, index) => (
        <Fragment key={offset}>
          {lostBytes > 0 && <span className={styles['node']}>{lostText(lostBytes)}</span>}
          {nameOf && rows[index - 1]?.part.nodeId !== nodeId && (
            <span className={styles['node']}>{`${index === 0 ? '' : '\n'}── ${nameOf(nodeId)} ──\n`}</span>
          )}
          <Written data={data} isError={stream === 'stderr'} />
        </Fragment>
      ))}
    </pre>
  )
}

/** Memoised, because output only grows at its end. */
const Written = memo(({ data, isError }: { data: string; isError: boolean }) => (
  <span className={isError ? styles['stderr'] : undefined}>{plainText(data)}</span>
))
