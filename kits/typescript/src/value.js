// Parsed JSON values: did parsing keep them, and their text. Nothing here recurses without a bound.

/** As deep as parsers of other languages go by default. */
const MAXIMUM_DEPTH = 128;
/** A double gives back any decimal of at most so many significant digits (DBL_DIG). */
const EXACT_DIGITS = 15;

/** The value may differ from what was sent. */
export class Inexact extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

/** The JSON text of a value that parsing kept, without spaces. Throws Inexact. */
export function textOf(value) {
  check(value);
  return JSON.stringify(value);
}

/** A text that is the same for the same JSON value, whatever the order of members; of a checked value. */
export function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  const members = Object.keys(value).sort().map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`);
  return `{${members.join(',')}}`;
}

/** The JSON type of a value, for messages. */
export function kind(value) {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  const kinds = { boolean: 'a boolean', number: 'a number', string: 'a string', object: 'an object' };
  return kinds[typeof value] ?? typeof value;
}

/** Whether this is an object of JSON: not null, no array, no instance of a class that writes itself. */
export function isObject(value) {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function check(value) {
  const open = [[value, 1]];
  while (open.length > 0) {
    const [item, depth] = open.pop();
    if (depth > MAXIMUM_DEPTH) throw new Inexact('too-deep', `is nested more than ${MAXIMUM_DEPTH} levels deep`);
    if (Array.isArray(item) || isObject(item)) {
      if (typeof item.toJSON === 'function') throw new Inexact('not-json', 'writes itself, which no JSON value does');
      for (const inner of Object.values(item)) open.push([inner, depth + 1]);
    } else if (typeof item === 'number') {
      if (!isExact(item)) {
        throw new Inexact('inexact-number', `holds the number ${item}, which may have been rounded when it was parsed`);
      }
    } else if (item !== null && typeof item !== 'string' && typeof item !== 'boolean') {
      throw new Inexact('not-json', `holds a ${typeof item}, which is no JSON value`);
    }
  }
}

/** False for a number that may have been rounded: all numbers are doubles here. */
function isExact(number) {
  if (Number.isSafeInteger(number)) return true;
  if (Number.isInteger(number) || !Number.isFinite(number)) return false;
  const digits = String(number).split('e')[0].replace(/\D/g, '').replace(/^0+/, '');
  return digits.length <= EXACT_DIGITS;
}
