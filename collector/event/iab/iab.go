// Package iab reads the strings in which the frameworks of the IAB say what a user has allowed: the TC string of IAB Europe's
// Transparency & Consent Framework ([ParseTCF]), the string of the Global Privacy Platform, which has sections for Europe, Canada
// and the United States ([ParseGPP]), and the US Privacy string ([ParseUSPrivacy]).
//
// The strings come from anybody. What reading one takes is bounded by its length, and a string that is not wholly of its format
// is refused rather than read in part, since half of a consent string allows too much or too little. Errors name the field that
// is wrong and never repeat the string, which can identify its user.
package iab
