/** What counts as one place: an IPv4 address in either spelling; of IPv6 the /64, as whoever has one address has the 2^64 beside it. */
export function toNetwork(address: string): string {
  if (!address.includes(':')) return address
  const unmapped = address.replace(/^::ffff:(?=\d+\.)/, '')
  if (!unmapped.includes(':')) return unmapped
  const [head = '', tail = ''] = unmapped.split('::')
  const [left, right] = [head.split(':').filter(Boolean), tail.split(':').filter(Boolean)]
  const zeros = Array.from({ length: Math.max(0, 8 - left.length - right.length) }, () => '0')
  return `${[...left, ...zeros, ...right].slice(0, 4).join(':')}::/64`
}
